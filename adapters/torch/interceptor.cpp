#include "interceptor.h"

#include "cache_lock.h"
#include "direct_ops.h"
#include "dispatch_key.h"
#include "exactness.h"
#include "list_ops.h"
#include "op_scope.h"
#include "out_of_memory.h"
#include "session_state.h"
#include "session_switch.h"
#include "standby.h"
#include "tensor_walk.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/PyInterpreterHooks.h>
#include <torch/library.h>

#include <optional>
#include <utility>

namespace headwater::adapter {
namespace {

/// False, with its arguments on the stack again, when the device has no room for it.
bool try_redispatch(const c10::OperatorHandle& op,
                    const OpTraits& traits,
                    c10::DispatchKeySet keys,
                    torch::jit::Stack& stack) {
  const auto arguments = torch::jit::last(stack, traits.num_arguments).vec();
  const std::size_t below = stack.size() - arguments.size();
  try {
    redispatch_below(op, keys, stack);
  } catch (const c10::OutOfMemoryError&) {
    stack.resize(below);
    stack.insert(stack.end(), arguments.begin(), arguments.end());
    return false;
  }
  return true;
}

/// Runs an operator as without us while everything fits twice over; false when it has to be
/// managed. See Note [Standing by].
bool try_let_through(SessionState& session,
                     const c10::OperatorHandle& op,
                     const OpTraits& traits,
                     c10::DispatchKeySet keys,
                     torch::jit::Stack& stack) {
  Standby& standby = session.standby();
  if (!standby.admits(op, traits, torch::jit::last(stack, traits.num_arguments))) {
    return false;
  }
  session.count_op();
  if (!may_begin_again(traits, torch::jit::last(stack, traits.num_arguments))) {
    redispatch_below(op, keys, stack);
  } else if (!try_redispatch(op, traits, keys, stack)) {
    return false;
  }
  const Arguments results = torch::jit::last(stack, traits.num_returns);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (op.schema().returns()[i].alias_info() == nullptr) {  // else it is an argument's
      for_each_storage(results[i], [&standby](c10::StorageImpl& storage, Adoption adoption) {
        standby.note(storage, adoption);
      });
    }
  }
  return true;
}

bool is_managed(OpPath path) {
  return path == OpPath::kManage || path == OpPath::kList || path == OpPath::kCollective;
}

/// Hands over to a subclass or a dispatch mode, as the Python key below ours would (torch 2.11 and
/// 2.12; later versions run Python before us). That key switches off every key above it while
/// Python code runs, ours included; here ours stays on, so the operators called are managed.
void dispatch_to_python(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  using c10::DispatchKeySet;
  constexpr DispatchKeySet kFromPython =
      DispatchKeySet(DispatchKeySet::FULL_AFTER, c10::DispatchKey::Python) |
      DispatchKeySet(c10::DispatchKey::Python);
  constexpr DispatchKeySet kAbove =
      (DispatchKeySet(DispatchKeySet::FULL) - kFromPython).remove(kInterceptKey);
  const c10::impl::ExcludeDispatchKeyGuard exclude(kAbove);
  (*c10::impl::getGlobalPyInterpreter())->dispatch(op, &stack);
}

/// Tells the allocator that the stream uses the tensor's bytes. False when they are not ours.
bool record_use(SessionState& session, const at::Tensor& tensor, const c10::Stream& stream) {
  if (!tensor.has_storage()) {
    return false;
  }
  const CacheLock lock(session.cache());
  const Tensor* managed = StorageBook::find(*tensor.storage().unsafeGetStorageImpl());
  if (managed != nullptr && managed->device) {
    session.memory().record_use(managed->device, session.memory().reference(stream));
  }
  return managed != nullptr;
}

/// The allocator knows nothing of our pointers: show it the block behind.
void record_stream(SessionState& session,
                   const c10::OperatorHandle& op,
                   c10::DispatchKeySet keys,
                   torch::jit::Stack& stack) {
  const at::Tensor& tensor = torch::jit::peek(stack, 0, 2).toTensor();
  if (record_use(session, tensor, torch::jit::peek(stack, 1, 2).toStream())) {
    torch::jit::drop(stack, 2);
  } else {
    redispatch_below(op, keys, stack);
  }
}

/// Lets the dispatcher skip our key for PyTorch's operators that need no management: views and
/// composites are a good part of all calls, and going through a boxed function costs as much as
/// such an operator itself.
void skip_unmanaged_operators(torch::Library& library) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const std::optional<c10::OperatorHandle> op = dispatcher.findOp(name);
    if (name.getNamespace() == "aten" && op && op->hasSchema() && needs_no_management(*op)) {
      library.impl(toString(name).c_str(), torch::CppFunction::makeFallthrough());
    }
  }
}

/// The registration, made once and kept: operators of attached threads pass through when no
/// session is active, and would fail without it.
void register_fallback() {
  static Mutex mutex;
  static std::optional<torch::Library> everything;
  static std::optional<torch::Library> special;
  const MutexLock lock(mutex);
  if (everything) {
    return;
  }
  if (c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(kInterceptKey)) {
    throw Error("Another library intercepts operators at the dispatch key Headwater needs: key " +
                std::string(c10::toString(kInterceptKey)) +
                ". Load only one of them in a process.");
  }
  everything.emplace(torch::Library::IMPL, "_", kInterceptKey, __FILE__, __LINE__);
  everything->fallback(torch::CppFunction::makeFromBoxedFunction<&intercept>());
  special.emplace(torch::Library::IMPL, "aten", kInterceptKey, __FILE__, __LINE__);
  skip_unmanaged_operators(*special);
  register_direct_math_operators(*special);
  register_direct_layer_operators(*special);
}

}  // namespace

void redispatch_below(const c10::OperatorHandle& op,
                      c10::DispatchKeySet keys,
                      torch::jit::Stack& stack) {
  // Operators call operators: with the key excluded the inner ones are the kernel's own affair,
  // also on threads that inherit this state.
  const c10::impl::ExcludeDispatchKeyGuard exclude(kInterceptKey);
  op.redispatchBoxed(keys, &stack);
}

void intercept(const c10::OperatorHandle& op,
               c10::DispatchKeySet all_keys,
               torch::jit::Stack* stack) {
  const c10::DispatchKeySet keys = all_keys & kBelowIntercept;
  RunningOp running;
  if (keys.has(c10::DispatchKey::Python)) {
    running.end();
    dispatch_to_python(op, *stack);
    return;
  }
  if (running.session() == nullptr) {
    redispatch_below(op, keys, *stack);
    return;
  }
  SessionState& session = *running.session();
  const OpTraits& traits = session.ops().traits(op);
  if (session.standby().on() && is_managed(traits.path)) {
    if (try_let_through(session, op, traits, keys, *stack)) {
      return;
    }
    running.end();
    if (end_standby(session)) {
      intercept(op, all_keys, stack);
    } else {  // everything is there, so it can run; the next one tries again
      redispatch_below(op, keys, *stack);
    }
    return;
  }
  switch (traits.path) {
    case OpPath::kPassThrough:
      running.end();
      op.redispatchBoxed(keys, stack);
      return;
    case OpPath::kView:
      running.end();
      redispatch_below(op, keys, *stack);
      return;
    case OpPath::kRecordStream:
      record_stream(session, op, keys, *stack);
      return;
    case OpPath::kCollective:
      session.count_op();
      run_collective(session, op, traits, keys, *stack);
      return;
    case OpPath::kList:
      session.count_op();
      run_list_op(session, op, traits, keys, *stack);
      return;
    case OpPath::kManage:
      session.count_op();
      run_managed(session, op, traits, keys, *stack);
      return;
  }
}

void start_intercepting(const std::shared_ptr<SessionState>& session) {
  // An operator that began without a session knows nothing of moving bytes: it ends first.
  StandStill still;
  if (still.session() != nullptr) {
    throw Error("A Headwater session is open already. Close it before opening another.");
  }
  attach_thread();
  StorageBook::set_reporting_to(
      &session->cache(), &session->lineage(), [](c10::StorageImpl& absent) {
        if (const std::shared_ptr<SessionState> now = active_session()) {
          now->hold_until_step_ends(absent);
        }
      });
  if (session->device().is_cpu()) {
    ChargingAllocator::install(session);
  }
  still.switch_to(session);
}

void stop_intercepting() {
  StandStill still;
  if (still.session() == nullptr) {
    return;
  }
  still.session()->close();
  ChargingAllocator::uninstall();
  still.switch_to(nullptr);
  detach_thread();
}

void attach_thread() {
  register_fallback();
  c10::impl::tls_set_dispatch_key_included(kInterceptKey, true);
}

void detach_thread() {
  c10::impl::tls_set_dispatch_key_included(kInterceptKey, false);
}

bool thread_is_attached() {
  return c10::impl::tls_is_dispatch_key_included(kInterceptKey);
}

}  // namespace headwater::adapter
