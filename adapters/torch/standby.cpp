#include "standby.h"

#include "cache_lock.h"
#include "session_state.h"
#include "session_switch.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace headwater::adapter {
namespace {

constexpr std::chrono::milliseconds kNoPatience(0);
constexpr std::chrono::milliseconds kPatience(200);

}  // namespace

Standby::Standby(SessionState& session, const Options& options)
    : session_(session),
      policy_(options.standby),
      min_tensor_bytes_(options.min_tensor_bytes),
      device_(session.device()) {}

bool Standby::admits_now(std::int64_t bytes) {
  const MutexLock one_at_a_time(looking_);
  const std::int64_t left = allowance_.load(std::memory_order_relaxed);
  session_.look_for_unseen_bytes();
  const Budget& budget = session_.runtime().budget();
  const auto used = static_cast<std::int64_t>(budget.used() + session_.unseen_bytes());
  const std::int64_t room = static_cast<std::int64_t>(budget.limit() / 2) - used - bytes;
  // Not a store: others may have begun since.
  allowance_.fetch_add(room - left, std::memory_order_relaxed);
  return room >= 0;
}

bool Standby::admits(const c10::OperatorHandle& op, const OpTraits& traits, Arguments arguments) {
  const bool collective = traits.path == OpPath::kCollective;
  if (!collective && admits(most_new_bytes(op, traits, arguments))) {
    return true;
  }
  if (collective || num_refusals_.fetch_add(1) + 1 == kMostRefusals) {
    num_blocks_.fetch_add(1);  // for good
  }
  return false;
}

std::size_t Standby::result_bytes(const c10::OperatorHandle& op,
                                  OpKey key,
                                  c10::function_ref<torch::jit::Stack()> arguments) {
  {
    const MutexLock lock(mutex_);
    if (const auto known = result_bytes_.find(key); known != result_bytes_.end()) {
      return known->second;
    }
  }
  const std::optional<std::size_t> found = output_bytes(op, arguments());
  if (!found) {
    return session_.runtime().budget().limit();  // which may change
  }
  const MutexLock lock(mutex_);
  if (result_bytes_.size() >= kMostResults) {
    result_bytes_.clear();
  }
  result_bytes_.emplace(key, *found);
  return *found;
}

std::size_t Standby::most_new_bytes(const c10::OperatorHandle& op,
                                    const OpTraits& traits,
                                    Arguments arguments) {
  ResultBound results(traits.growth);
  for (const c10::IValue& argument : arguments) {
    results.add(argument);
  }
  const std::size_t workspace =
      session_.working_sets().most_workspace(traits.workspace, results.given());
  const std::optional<std::size_t> most = results.bytes();
  // One that reads no tensor may be given some for their shapes.
  if (most && !traits.tensors.empty() && (*most > 0 || traits.growth == Growth::kNone)) {
    return workspace + *most;
  }
  return workspace + result_bytes(op, boxed_op_key(op, arguments), [&] { return arguments.vec(); });
}

void Standby::note(const at::Tensor& result) {
  for_each_storage(
      result, [this](c10::StorageImpl& storage, Adoption adoption) { note(storage, adoption); });
}

void Standby::note(c10::StorageImpl& storage, Adoption adoption) {
  if (adoption == Adoption::kForbidden) {
    session_.book().note_unmanaged(storage);
  } else if (storage.nbytes() >= min_tensor_bytes_ && storage.device() == device_ &&
             StorageBook::find(storage) == nullptr) {
    noted_.add(storage);
  }
}

Standby::Noted Standby::noted() {
  Noted sum;
  for (const c10::intrusive_ptr<c10::StorageImpl>& storage : noted_.alive()) {
    if (StorageBook::find(*storage) == nullptr) {
      sum.bytes += storage->nbytes();
      ++sum.num_tensors;
    }
  }
  return sum;
}

std::size_t Standby::peak() const {
  const std::optional<AllocatorCount> count = session_.working_sets().count();
  const bool now = count && on() && count->peak > peak_before_.load();
  return std::max(peak_kept_.load(), now ? count->peak : 0);
}

void Standby::reset_peak() {
  peak_kept_.store(0);
  begin_peak();
}

void Standby::begin_peak() {
  if (const std::optional<AllocatorCount> count = session_.working_sets().count()) {
    peak_before_.store(count->peak);
  }
}

void Standby::try_begin() {
  if (on() || inside_operator() || !may_begin()) {
    return;
  }
  const StandStill still(kNoPatience);  // there is a next step
  if (still.reached() && still.session() == &session_ && may_begin()) {
    allowance_.store(0);  // the first to come looks
    begin_peak();
    {
      const CacheLock lock(session_.runtime().cache());
      session_.runtime().cache().forget_packings();
    }
    on_.store(true);
  }
}

bool Standby::may_begin() {
  if (num_blocks_.load() != 0 || policy_ == StandbyPolicy::kOff || session_.lineage().active() ||
      session_.runtime().conductor().watching()) {
    return false;
  }
  const Report report = session_.runtime().report();
  session_.look_for_unseen_bytes();
  // A tensor with a copy on the host has to be told of every write.
  return report.host_bytes == 0 && session_.pending_work().empty() &&
         report.peak_bytes + session_.unseen_bytes() <= report.budget_bytes / 2;
}

std::vector<c10::intrusive_ptr<c10::StorageImpl>> Standby::end() {
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> storages = noted_.alive();
  peak_kept_.store(peak());
  on_.store(false);
  noted_.clear();
  return storages;
}

bool end_standby(SessionState& session) {
  if (!session.standby().on()) {
    return true;
  }
  if (inside_operator()) {
    return false;
  }
  const StandStill still(kPatience);
  if (!still.reached()) {
    return false;
  }
  if (still.session() == &session && session.standby().on()) {
    session.take_in(session.standby().end());
  }
  return true;
}

NoStandby::NoStandby(SessionState& session) : standby_(session.standby()) {
  standby_.num_blocks_.fetch_add(1);
  ended_ = end_standby(session);
}

NoStandby::~NoStandby() {
  standby_.num_blocks_.fetch_sub(1);
}

}  // namespace headwater::adapter
