#pragma once

#include "headwater/trace/step_trace.h"
#include "support/dice.h"
#include "support/trace_builder.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headwater::support {

/// A step drawn at random for what gives tensors up: forward runs operators of all kinds on what is
/// there, some in place or by inheritance, some refused, some that draw random numbers or keep
/// statistics; many results are freed soon. Backward uses the others in reverse, or nearly so.
class ReplayableProgram {
 public:
  explicit ReplayableProgram(unsigned seed) : dice_(seed) {}

  StepTrace next_step(std::size_t num_ops);

 private:
  TensorId any();
  void run_forward();
  void make_tensor();
  /// Makes a tensor of one that was made right before, and may have no more use for that.
  void inherit(std::size_t bytes);
  void write_in_place();
  void free_one();
  void run_backward();
  Replay any_replay();
  Wish any_wish();

  Dice dice_;
  TraceBuilder builder_;
  std::vector<TensorId> parameters_;
  std::vector<TensorId> alive_;  // of the running step
  bool in_chain_ = false;        // results follow from one another for a while
};

}  // namespace headwater::support
