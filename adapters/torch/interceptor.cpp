#include "interceptor.h"

#include <atomic>
#include <optional>
#include <utility>

#include <c10/core/impl/LocalDispatchKeySet.h>
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
std::atomic<bool> closing{false};
Mutex switch_mutex;                        // held while a session is opened or closed
std::shared_ptr<SessionState> session_in_use;
// Deleters of the last session may still be returning from its mutex.
std::shared_ptr<SessionState> session_before;

void leave() {
  if (num_running.fetch_sub(1) == 1 && closing.load()) {
    num_running.notify_all();
  }
}

/// The session to run an operator in, or null. A session being closed is waited for: its tensors
/// are on their way back.
SessionState* enter() {
  for (;;) {
    num_running.fetch_add(1);
    if (SessionState* session = active.load()) {
      return session;
    }
    leave();
    if (!closing.load()) {
      return nullptr;
    }
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
    if (std::exchange(session_, nullptr) != nullptr) {
      leave();
    }
  }

 private:
  SessionState* session_;
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
  if (running.session() == nullptr || keys.has(c10::DispatchKey::Python)) {
    running.end();
    op.redispatchBoxed(keys, stack);
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

/// The registration, made at the first session and kept: operators of threads that are still
/// attached pass through when no session is active.
void register_fallback() {
  static std::optional<torch::Library> library;
  if (library) {
    return;
  }
  if (c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(kInterceptKey)) {
    throw Error(
        "Another library intercepts operators at the dispatch key Headwater needs: key " +
        std::string(c10::toString(kInterceptKey)) + ". Load only one of them in a process.");
  }
  library.emplace(torch::Library::IMPL, "_", kInterceptKey, __FILE__, __LINE__);
  library->fallback(torch::CppFunction::makeFromBoxedFunction<&intercept>());
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
  const MutexLock lock(switch_mutex);
  if (session_in_use) {
    throw Error("A Headwater session is open already. Close it before opening another.");
  }
  register_fallback();
  session_in_use = session;
  StorageBook::set_reporting_to(&session->cache());
  if (session->device().is_cpu()) {
    ChargingAllocator::install(session);
  }
  active.store(session.get());
  attach_thread();
}

void stop_intercepting() {
  if (OpScope::current() != nullptr) {
    throw Error("Headwater cannot be switched off inside an operator. Do it after.");
  }
  const MutexLock lock(switch_mutex);
  if (!session_in_use) {
    return;
  }
  closing.store(true);
  active.store(nullptr);
  for (std::int64_t running = num_running.load(); running != 0; running = num_running.load()) {
    num_running.wait(running);
  }
  try {
    session_in_use->close();
  } catch (...) {
    active.store(session_in_use.get());
    closing.store(false);
    throw;
  }
  ChargingAllocator::uninstall();
  session_before = std::move(session_in_use);
  closing.store(false);
  detach_thread();
}

std::shared_ptr<SessionState> active_session() {
  const MutexLock lock(switch_mutex);
  return session_in_use;
}

void attach_thread() { c10::impl::tls_set_dispatch_key_included(kInterceptKey, true); }

void detach_thread() { c10::impl::tls_set_dispatch_key_included(kInterceptKey, false); }

bool thread_is_attached() { return c10::impl::tls_is_dispatch_key_included(kInterceptKey); }

}  // namespace headwater::adapter
