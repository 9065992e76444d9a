#include "interceptor.h"

#include <atomic>
#include <optional>
#include <utility>

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/PyInterpreterHooks.h>
#include <torch/library.h>

#include "cache_lock.h"
#include "dispatch_key.h"
#include "list_ops.h"
#include "op_scope.h"
#include "out_of_memory.h"
#include "session_state.h"

namespace headwater::adapter {
namespace {

// A dispatcher fallback is a plain function: what it works on has to be reachable from here.
std::atomic<SessionState*> active{nullptr};
std::atomic<std::int64_t> num_running{0};  // operators between enter() and leave()
std::atomic<bool> switching{false};        // a session is being opened or closed
Mutex switch_mutex;                        // held meanwhile
thread_local int running_here = 0;         // the part of num_running on this thread
std::shared_ptr<SessionState> session_in_use;
// Deleters of the last session may still be returning from its mutex.
std::shared_ptr<SessionState> session_before;

void leave() {
  --running_here;
  if (num_running.fetch_sub(1) == 1 && switching.load()) {
    num_running.notify_all();
  }
}

/// The session to run an operator in, or null. While sessions are switched it waits: tensors are on
/// their way back, or about to move.
SessionState* enter() {
  for (;;) {
    ++running_here;
    num_running.fetch_add(1);
    if (!switching.load()) {
      return active.load();
    }
    leave();
    wait_for_mutex.load()(switch_mutex);
    switch_mutex.unlock();
  }
}

class Running {
 public:
  Running() : session_(enter()) {}
  ~Running() { end(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  Running(Running&&) = delete;
  Running& operator=(Running&&) = delete;

  SessionState* session() const { return session_; }
  void end() {
    if (!std::exchange(ended_, true)) {
      leave();
    }
  }

 private:
  SessionState* const session_;
  bool ended_ = false;
};

/// While this lives no operator runs on any attached thread. Throws Error inside an operator.
class StandStill {
 public:
  StandStill() {
    if (running_here > 0) {
      throw Error("Headwater cannot be switched on or off inside an operator. Do it after.");
    }
    switch_mutex.lock();
    switching.store(true);
    for (std::int64_t running = num_running.load(); running != 0; running = num_running.load()) {
      num_running.wait(running);
    }
  }
  ~StandStill() {
    switching.store(false);
    switch_mutex.unlock();
  }
  StandStill(const StandStill&) = delete;
  StandStill& operator=(const StandStill&) = delete;
  StandStill(StandStill&&) = delete;
  StandStill& operator=(StandStill&&) = delete;
};

void redispatch_below(const c10::OperatorHandle& op,
                      c10::DispatchKeySet keys,
                      torch::jit::Stack& stack) {
  // Operators call operators: with the key excluded the inner ones are the kernel's own affair,
  // also on threads that inherit this state.
  const c10::impl::ExcludeDispatchKeyGuard exclude(kInterceptKey);
  op.redispatchBoxed(keys, &stack);
}

void run_collective(SessionState& session,
                    const c10::OperatorHandle& op,
                    const OpTraits& traits,
                    c10::DispatchKeySet keys,
                    torch::jit::Stack& stack) {
  StorageBook::expect_collectives();
  OpScope scope(session, op, traits);
  scope.acquire(torch::jit::last(stack, traits.num_arguments));
  redispatch_below(op, keys, stack);
  const Arguments results = torch::jit::last(stack, traits.num_returns);
  std::vector<Use> pins = scope.pass_on_pins(results);
  if (traits.name != "_c10d_functional::wait_tensor") {
    session.pending_work().add(results, std::move(pins));
    return;
  }
  std::vector<Use> waited;
  for (const Use& use : pins) {
    const std::vector<Use> more = session.pending_work().take_waited(*use.tensor);
    waited.insert(waited.end(), more.begin(), more.end());
  }
  const CacheLock lock(session.cache());
  session.cache().release(pins);
  session.cache().release(waited);
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

/// The allocator knows nothing of our pointers: show it the block behind.
bool record_stream(SessionState& session, torch::jit::Stack& stack) {
  const at::Tensor& tensor = torch::jit::peek(stack, 0, 2).toTensor();
  const c10::Stream stream = torch::jit::peek(stack, 1, 2).toStream();
  bool managed = false;
  {
    const CacheLock lock(session.cache());
    if (tensor.has_storage()) {
      if (Tensor* found = StorageBook::find(*tensor.storage().unsafeGetStorageImpl())) {
        managed = true;
        if (found->device) {
          session.memory().record_use(found->device, session.memory().reference(stream));
        }
      }
    }
  }
  if (managed) {
    torch::jit::drop(stack, 2);
  }
  return managed;
}

void intercept(const c10::OperatorHandle& op, c10::DispatchKeySet all_keys, torch::jit::Stack* stack) {
  const c10::DispatchKeySet keys = all_keys & kBelowIntercept;
  Running running;
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
      if (!record_stream(session, *stack)) {
        redispatch_below(op, keys, *stack);
      }
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
  static std::optional<torch::Library> skipped;
  const MutexLock lock(mutex);
  if (everything) {
    return;
  }
  if (c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(kInterceptKey)) {
    throw Error(
        "Another library intercepts operators at the dispatch key Headwater needs: key " +
        std::string(c10::toString(kInterceptKey)) + ". Load only one of them in a process.");
  }
  everything.emplace(torch::Library::IMPL, "_", kInterceptKey, __FILE__, __LINE__);
  everything->fallback(torch::CppFunction::makeFromBoxedFunction<&intercept>());
  skipped.emplace(torch::Library::IMPL, "aten", kInterceptKey, __FILE__, __LINE__);
  skip_unmanaged_operators(*skipped);
}

}  // namespace

void run_managed(SessionState& session,
                 const c10::OperatorHandle& op,
                 const OpTraits& traits,
                 c10::DispatchKeySet keys,
                 torch::jit::Stack& stack) {
  OpScope scope(session, op, traits);
  scope.acquire(torch::jit::last(stack, traits.num_arguments));
  redispatch_below(op, keys, stack);
  scope.finish(torch::jit::last(stack, traits.num_returns));
}

void start_intercepting(const std::shared_ptr<SessionState>& session) {
  // An operator that began without a session knows nothing of moving bytes: it ends first.
  const StandStill still;
  if (session_in_use) {
    throw Error("A Headwater session is open already. Close it before opening another.");
  }
  attach_thread();
  session_in_use = session;
  StorageBook::set_reporting_to(&session->cache(), [](c10::StorageImpl& absent) {
    if (const std::shared_ptr<SessionState> now = active_session()) {
      now->hold_until_step_ends(absent);
    }
  });
  if (session->device().is_cpu()) {
    ChargingAllocator::install(session);
  }
  active.store(session.get());
}

void stop_intercepting() {
  const StandStill still;
  if (!session_in_use) {
    return;
  }
  session_in_use->close();
  active.store(nullptr);
  ChargingAllocator::uninstall();
  session_before = std::move(session_in_use);
  detach_thread();
}

std::shared_ptr<SessionState> active_session() {
  const MutexLock lock(switch_mutex);
  return session_in_use;
}

void attach_thread() {
  register_fallback();
  c10::impl::tls_set_dispatch_key_included(kInterceptKey, true);
}

void detach_thread() { c10::impl::tls_set_dispatch_key_included(kInterceptKey, false); }

bool thread_is_attached() { return c10::impl::tls_is_dispatch_key_included(kInterceptKey); }

}  // namespace headwater::adapter
