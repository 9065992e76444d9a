#include "standby.h"

#include "cache_lock.h"
#include "session_state.h"
#include "session_switch.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace headwater::adapter {
namespace {

constexpr std::chrono::milliseconds kNoPatience(0);
constexpr std::chrono::milliseconds kPatience(200);

}  // namespace

bool Standby::admits(std::size_t bytes) {
  const std::size_t spent = spent_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (fits(spent)) {
    return true;
  }
  const MutexLock one_at_a_time(looking_);
  const std::size_t counted = spent_.load(std::memory_order_relaxed);
  session_.look_for_unseen_bytes();
  spent_.fetch_sub(counted - bytes, std::memory_order_relaxed);  // others may have begun since
  return fits(bytes);
}

bool Standby::fits(std::size_t bytes) const {
  const Budget& budget = session_.runtime().budget();
  return budget.used() + session_.unseen_bytes() + bytes <= budget.limit() / 2;
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

void Standby::note(c10::StorageImpl& storage, Adoption adoption) {
  if (adoption == Adoption::kForbidden) {
    session_.book().note_unmanaged(storage);
    return;
  }
  if (storage.device() != session_.device() || StorageBook::find(storage) != nullptr ||
      storage.nbytes() < session_.runtime().options().min_tensor_bytes) {
    return;
  }
  c10::raw::weak_intrusive_ptr::incref(&storage);
  Weak weak = Weak::reclaim(&storage);
  const MutexLock lock(mutex_);
  if (noted_.size() >= prune_at_) {
    prune();
  }
  noted_.push_back(std::move(weak));
}

Standby::Noted Standby::noted() {
  Noted sum;
  for (const c10::intrusive_ptr<c10::StorageImpl>& storage : alive()) {
    if (StorageBook::find(*storage) == nullptr) {
      sum.bytes += storage->nbytes();
      ++sum.num_tensors;
    }
  }
  return sum;
}

std::vector<c10::intrusive_ptr<c10::StorageImpl>> Standby::alive() {
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> storages;
  const MutexLock lock(mutex_);
  prune();
  drop_duplicates();
  for (const Weak& storage : noted_) {
    if (c10::intrusive_ptr<c10::StorageImpl> found =
            StorageBook::try_refer_to(*storage._unsafe_get_target())) {
      storages.push_back(std::move(found));
    }
  }
  return storages;
}

void Standby::prune() {
  constexpr std::size_t kSuspicious = 1 << 16;  // nobody keeps as many tensors alive
  std::erase_if(noted_, [](const Weak& storage) { return storage.expired(); });
  if (noted_.size() > kSuspicious) {
    drop_duplicates();
  }
  prune_at_ = std::max(kLeastToPrune, 2 * noted_.size());
}

void Standby::drop_duplicates() {
  // Some operators return what they were given without saying so, each time anew.
  const auto address = [](const Weak& storage) { return storage._unsafe_get_target(); };
  std::sort(noted_.begin(), noted_.end(), [&](const Weak& a, const Weak& b) {
    return std::less<>()(address(a), address(b));
  });
  const auto same = [&](const Weak& a, const Weak& b) { return address(a) == address(b); };
  noted_.erase(std::unique(noted_.begin(), noted_.end(), same), noted_.end());
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
    spent_.store(0);
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
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> storages = alive();
  peak_kept_.store(peak());
  const MutexLock lock(mutex_);
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
