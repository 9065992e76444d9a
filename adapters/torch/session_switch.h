#pragma once

#include "thread_ops.h"

#include <chrono>
#include <memory>

namespace headwater::adapter {

class SessionState;

/// The session operators are sent through, or null.
std::shared_ptr<SessionState> active_session();

/// One operator on its way: sessions are switched before or after it, never meanwhile. While they
/// are switched its constructor waits: tensors are on their way back, or about to move.
/// For one thread.
class RunningOp {
 public:
  RunningOp();
  ~RunningOp() { end(); }
  RunningOp(const RunningOp&) = delete;
  RunningOp& operator=(const RunningOp&) = delete;
  RunningOp(RunningOp&&) = delete;
  RunningOp& operator=(RunningOp&&) = delete;

  /// The session to run in, or null.
  SessionState* session() const { return session_; }
  /// Counts it among those that were let through while standing by.
  void count_let_through() { here_.count_let_through(); }
  void end();

 private:
  ThreadOps& here_;
  SessionState* const session_;
  bool ended_ = false;
};

/// Whether the calling thread is inside an operator.
bool inside_operator();

/// Lets no other thread begin an operator, nor return from one, until the process has exited. A
/// thread that returns to an interpreter on its way out is ended inside PyTorch's functions, which
/// takes the process down. The calling thread goes on as before. Cannot be taken back.
void hold_back_other_threads();

/// While this lives no operator runs on any attached thread, and the session may be switched.
class StandStill {
 public:
  /// Lets running operators end and holds new ones back. Throws Error inside an operator.
  StandStill();
  /// The same, but gives up after a while: an operator may be one that waits for the caller.
  explicit StandStill(std::chrono::milliseconds patience);
  ~StandStill();
  StandStill(const StandStill&) = delete;
  StandStill& operator=(const StandStill&) = delete;
  StandStill(StandStill&&) = delete;
  StandStill& operator=(StandStill&&) = delete;

  /// Whether all operators have ended in time. Nothing else may be asked or done if not.
  bool reached() const { return reached_; }
  /// The session switched to last, or null.
  SessionState* session() const;
  void switch_to(std::shared_ptr<SessionState> session);

 private:
  bool reached_ = true;
};

}  // namespace headwater::adapter
