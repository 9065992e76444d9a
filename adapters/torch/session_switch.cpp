#include "session_switch.h"

#include "headwater/base/error.h"
#include "session_state.h"
#include "thread_ops.h"
#include "turns.h"

#include <atomic>
#include <utility>

namespace headwater::adapter {
namespace {

// A dispatcher fallback is a plain function: what it works on has to be reachable from here.
std::atomic<SessionState*> active{nullptr};
std::atomic<unsigned> gate{0};           // why operators may not run now: kSwitching, kEnding
thread_local bool ends_process = false;  // this thread has held the others back
Mutex switch_mutex;                      // held by whoever stands still
Mutex end_mutex;                         // held for good by the thread that ends the process
std::shared_ptr<SessionState> session_in_use HEADWATER_GUARDED_BY(switch_mutex);
// Deleters of the last session may still be returning from its mutex.
std::shared_ptr<SessionState> session_before HEADWATER_GUARDED_BY(switch_mutex);

constexpr unsigned kSwitching = 1;  // somebody stands still
constexpr unsigned kEnding = 2;     // the process is about to exit

void leave(ThreadOps& here) {
  here.end();
  if ((gate.load() & kEnding) != 0) [[unlikely]] {
    if (here.num_running() == 0 && !ends_process) {
      const MutexLock for_good(end_mutex);
    }
  }
}

/// Whether an operator may run now; otherwise nothing has changed.
bool try_enter(ThreadOps& here) {
  here.begin();
  const unsigned closed = gate.load();
  if (closed == 0 || (closed == kEnding && (ends_process || here.num_running() > 1))) [[likely]] {
    return true;
  }
  leave(here);
  return false;
}

SessionState* enter(ThreadOps& here) {
  while (!try_enter(here)) {
    const MutexLock until_switched(switch_mutex);
  }
  return active.load();
}

}  // namespace

std::shared_ptr<SessionState> active_session() {
  const MutexLock lock(switch_mutex);
  return session_in_use;
}

bool inside_operator() {
  return ThreadOps::here().num_running() > 0;
}

RunningOp::RunningOp() : here_(ThreadOps::here()), session_(enter(here_)) {}

void RunningOp::end() {
  if (!std::exchange(ended_, true)) {
    leave(here_);
  }
}

// As good as forever; the longest duration there is cannot be compared with what a clock counts.
StandStill::StandStill() : StandStill(std::chrono::hours(1'000'000)) {}

// Holds the mutex beyond the function where it succeeds, which the analysis takes for a mistake.
StandStill::StandStill(std::chrono::milliseconds patience)
    HEADWATER_ANNOTATION(no_thread_safety_analysis) {
  if (inside_operator()) {
    throw Error("Headwater cannot be switched on or off inside an operator. Do it after.");
  }
  using Clock = std::chrono::steady_clock;
  switch_mutex.lock();
  const Clock::time_point begin = Clock::now();
  gate.fetch_or(kSwitching);
  while (ThreadOps::any_running() && reached_) {
    let_others_run.load()();  // they may need the interpreter lock to end
    reached_ = Clock::now() - begin < patience;
  }
  if (!reached_) {
    gate.fetch_and(~kSwitching);
    switch_mutex.unlock();
  }
}

StandStill::~StandStill() HEADWATER_ANNOTATION(no_thread_safety_analysis) {
  if (reached_) {
    gate.fetch_and(~kSwitching);
    switch_mutex.unlock();
  }
}

SessionState* StandStill::session() const {
  switch_mutex.assume_held();
  return session_in_use.get();
}

void StandStill::switch_to(std::shared_ptr<SessionState> session) {
  switch_mutex.assume_held();
  if (session_in_use) {
    session_before = std::move(session_in_use);
  }
  session_in_use = std::move(session);
  active.store(session_in_use.get());
}

// The mutex is held for good, which the analysis takes for a mistake.
void hold_back_other_threads() HEADWATER_ANNOTATION(no_thread_safety_analysis) {
  if (end_mutex.try_lock()) {
    ends_process = true;
    gate.fetch_or(kEnding);
  }
}

}  // namespace headwater::adapter
