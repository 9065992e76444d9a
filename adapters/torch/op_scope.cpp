#include "op_scope.h"

#include "cache_lock.h"
#include "exactness.h"
#include "headwater/plan/inherit/inheritances.h"
#include "out_of_memory.h"
#include "replay.h"
#include "session_state.h"

#include <algorithm>

namespace headwater::adapter {
namespace {

thread_local OpScope* current_scope = nullptr;

}  // namespace

OpScope::OpScope(SessionState& session, const c10::OperatorHandle& op, const OpTraits& traits)
    : session_(session),
      cache_(session.cache()),
      op_(op),
      traits_(traits),
      outer_(current_scope),
      needs_(session, op, traits) {
  current_scope = this;
}

OpScope::~OpScope() {
  current_scope = outer_;
  release();
}

OpScope* OpScope::current() {
  return current_scope;
}

OpScope::NoScope::NoScope() : before_(current_scope) {
  current_scope = nullptr;
}

OpScope::NoScope::~NoScope() {
  current_scope = before_;
}

void OpScope::bring(Arguments arguments) {
  arguments_ = arguments;
  can_begin_again_ =
      may_begin_again(traits_, arguments) || (traits_.only_reads && AsItWas::has_generator());
  if (traits_.finds_places) {
    count_places(arguments);
  }
  const auto boxed_key = [this] { return boxed_op_key(op_, arguments_); };
  OpKeyOnce key(boxed_key);
  session_.release_finished_work();
  for (;;) {
    session_.turns().take([&] { return try_bring(Waiting::kAllowed, key); },
                          [&] { static_cast<void>(try_bring(Waiting::kOver, key)); });
    if (to_replay_.empty()) {
      return;
    }
    replay(session_, to_replay_);
  }
}

std::optional<std::uint64_t> OpScope::try_bring(Waiting waiting, OpKeyOnce& key) {
  const StreamRef stream = session_.memory().current_stream();
  Request request = needs_.predict(arguments_, key);
  const CacheLock lock(cache_);
  uses_.clear();
  find_tensors(arguments_, stream);
  stream_ = stream;
  note_begin(key, [&] { return arguments_; });  // what it sends away makes room
  if (must_replay_first()) {
    return std::nullopt;
  }
  const Tensor* const testator = find_testator();
  inherits_ = testator != nullptr;
  if (inherits_) {
    request.new_bytes = std::min(request.new_bytes, inheriting_workspace(testator->bytes));
  }
  try {
    reserved_ = cache_.acquire(uses_, request, stream);
  } catch (const OutOfMemory&) {
    if (waiting == Waiting::kOver || !session_.turns().others_are_running()) {
      throw;
    }
    return session_.turns().num_ended();
  }
  mark_pinned();
  if (is_replaying()) {
    mark_used_unseen();
  }
  if (inherits_) {  // in pieces it takes another time, and allocates what others do not
    return std::nullopt;
  }
  if (played_) {
    session_.runtime().conductor().start_clock(*played_);
  }
  needs_.begin();
  return std::nullopt;
}

bool OpScope::acquire_resident(c10::ArrayRef<TensorUse> tensors,
                               c10::function_ref<OpKey()> work_out_key,
                               c10::function_ref<torch::jit::Stack()> box) {
  OpKeyOnce key(work_out_key);
  if (!needs_.fit_as_is(tensors, key)) {
    return false;
  }
  if (traits_.finds_places) {
    count_places(box());
  }
  session_.release_finished_work();
  stream_ = session_.memory().current_stream();
  const CacheLock lock(cache_);
  if (must_be_boxed(tensors)) {
    return false;
  }
  for (const TensorUse& use : tensors) {
    for_each_storage(*use.tensor, [&](c10::StorageImpl& storage, Adoption adoption) {
      cache_.mutex().assume_held();
      find_storage(storage, adoption, use.access, stream_);
    });
  }
  if (any_absent() || !needs_.still_fit()) {
    return false;
  }
  // Before its tensors are pinned: some may be copied from now on, and some may go.
  torch::jit::Stack boxed;
  note_begin(key, [&]() -> Arguments { return boxed = box(); });
  const bool inherits = played_ && played_->inherits;
  if (any_absent() || leaves_recipe() || inherits || !try_acquire_resident()) {
    hand_on();
    return false;
  }
  box_ = box;
  if (played_) {
    session_.runtime().conductor().start_clock(*played_);
  }
  return true;
}

bool OpScope::any_absent() const {
  return std::any_of(
      uses_.begin(), uses_.end(), [](const Use& use) { return !on_device(use.tensor->residency); });
}

bool OpScope::try_acquire_resident() {
  try {
    reserved_ = cache_.acquire(uses_, {.op = traits_.name}, stream_);
  } catch (const OutOfMemory&) {  // one of them was sent away just now
    return false;
  }
  mark_pinned();
  if (!needs_.make_room(stream_)) {
    unpin();
    return false;
  }
  return true;
}

void OpScope::finish(c10::ArrayRef<c10::IValue> results) {
  const bool measured = needs_.end();
  const StreamRef stream = session_.memory().current_stream();
  const CacheLock lock(cache_);
  reserved_.release();
  inherited_.release();
  if (recipe_) {
    find_fresh(results);
  }
  adopt(results, stream, nullptr);
  if (recipe_) {
    tie_recipe();
  }
  if (num_places_ > 0) {
    pack_places(results.back().toTensor());
  }
  if (measured) {
    session_.look_for_unseen_bytes();  // a library may have kept a workspace
  }
  unpin_and_settle(stream);
}

void OpScope::finish_resident(c10::ArrayRef<const at::Tensor*> results) {
  const CacheLock lock(cache_);
  for (const at::Tensor* result : results) {
    for_each_storage(*result, [this](c10::StorageImpl& storage, Adoption adoption) {
      cache_.mutex().assume_held();
      adopt_result(storage, adoption, stream_);
    });
  }
  if (num_places_ > 0) {
    pack_places(*results.back());
  }
  unpin_and_settle(stream_);
}

void OpScope::unpin_and_settle(StreamRef stream) {
  note_end();
  unpin();
  cache_.settle(session_.unseen_bytes(), stream);
}

std::vector<Use> OpScope::pass_on_pins(c10::ArrayRef<c10::IValue> results) {
  const StreamRef stream = session_.memory().current_stream();
  const CacheLock lock(cache_);
  std::vector<Use> pins(uses_.begin(), uses_.end());
  reserved_.release();
  adopt(results, stream, &pins);
  note_end();
  pinned_ = false;
  session_.turns().end();
  return pins;
}

void OpScope::find_tensors(Arguments arguments, StreamRef stream) {
  for (const TensorArgument& argument : traits_.tensors) {
    for_each_storage(arguments[argument.index], [&](c10::StorageImpl& storage, Adoption adoption) {
      cache_.mutex().assume_held();
      find_storage(storage, adoption, argument.access, stream);
    });
  }
}

void OpScope::find_storage(c10::StorageImpl& storage,
                           Adoption adoption,
                           AccessKind access,
                           StreamRef stream) {
  Tensor* tensor = StorageBook::find(storage);
  if (tensor == nullptr) {
    tensor = adopt_storage(storage, adoption, stream);
    if (tensor != nullptr) {  // made out of our sight, perhaps for another stream
      session_.memory().record_use(tensor->device, stream);
    }
  }
  if (tensor != nullptr) {
    cache_.keep(*tensor);
    uses_.push_back({tensor, access});
  }
}

Tensor* OpScope::adopt_storage(c10::StorageImpl& storage, Adoption adoption, StreamRef stream) {
  if (adoption == Adoption::kAllowed) {
    return session_.book().find_or_adopt(storage, cache_, stream);
  }
  session_.book().note_unmanaged(storage);
  return nullptr;
}

Tensor* OpScope::adopt_result(c10::StorageImpl& storage, Adoption adoption, StreamRef stream) {
  const bool known = StorageBook::find(storage) != nullptr;
  Tensor* tensor = adopt_storage(storage, adoption, stream);
  if (played_ && !known && tensor != nullptr) {
    made_.push_back(tensor);
  }
  return tensor;
}

void OpScope::adopt(c10::ArrayRef<c10::IValue> results,
                    StreamRef stream,
                    std::vector<Use>* pinned) {
  for (const c10::IValue& result : results) {
    for_each_storage(result, [&](c10::StorageImpl& storage, Adoption adoption) {
      cache_.mutex().assume_held();
      Tensor* tensor = adopt_result(storage, adoption, stream);
      if (tensor != nullptr && pinned != nullptr) {
        const Use use{tensor, AccessKind::kWrite};
        static_cast<void>(cache_.acquire({&use, 1}, {.op = traits_.name}, stream));
        pinned->push_back(use);
      }
    });
  }
}

void OpScope::release() noexcept {
  if (pinned_) {
    const CacheLock lock(cache_);
    unpin();
  }
}

void OpScope::mark_pinned() {
  pinned_ = true;
  session_.turns().begin();
}

void OpScope::unpin() noexcept {
  cache_.release(uses_);
  pinned_ = false;
  session_.turns().end();
}

}  // namespace headwater::adapter
