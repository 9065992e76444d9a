#pragma once

#include "headwater/offload/conductor.h"
#include "headwater/plan/replay/writers.h"
#include "recorded_step.h"
#include "sim_rig.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headwater::replay {

/// Runs a recorded step again and again on the simulated device, its tensors in a tensor cache and
/// under a conductor, as a training would: every number repeats exactly.
class RecordedTraining {
 public:
  /// The step must outlive it; the budget is in its bytes.
  RecordedTraining(const RecordedStep& step, std::size_t budget, RecomputePolicy recompute);

  /// Nanoseconds on the device since the end of the step before.
  std::uint64_t run_step();

  /// Runs a step that is asked now and then for a number on the device, as by a loop that reads its
  /// loss. The most nanoseconds that one took to the host.
  std::uint64_t run_step_with_reads();

  Statistics statistics();
  std::size_t peak_bytes() const { return rig_.budget.peak(); }
  /// What the plan says of a step; 0 while nothing is planned.
  std::uint64_t expected_ns();

 private:
  /// One storage that a replay makes.
  struct ToMake {
    Ordinal tensor = 0;
    bool comes_back = false;  // else it has been freed, and goes after its last reader
    std::size_t last_reader = 0;
  };

  /// A number that the host asks for, and that arrives there.
  struct Read {
    Event asked;
    Event arrived;
  };

  void begin_step();
  void end_step();
  void run_op(Position position);
  std::uint64_t finish_step();
  Read read();
  /// What the operator makes, in order.
  std::vector<Tensor*> make_results(Position position);
  /// The same of one whose result takes the bytes of its first input.
  std::vector<Tensor*> inherit(Position position, std::vector<Use>& uses);
  void leave_recipe(Position position, Conductor::Recipe recipe);
  void replay(std::span<const Use> uses);
  std::vector<ToMake> replay_order(std::vector<Ordinal> wanted) const;
  void make_again(const ToMake& made);
  void run_again(Position writer, Ordinal made);
  std::vector<Use> uses_of(Position position) const;
  Reservation acquire(std::span<const Use> uses, std::size_t new_bytes);
  void release(std::span<const Use> uses);
  Tensor* make(std::size_t bytes);
  void free(Tensor& tensor);
  void forget(Ordinal tensor);
  Ordinal ordinal_of(const Tensor& tensor) const;

  const RecordedStep& step_;
  const Writers writers_;
  SimRig rig_;
  Conductor conductor_;
  std::vector<Tensor*> tensors_;  // by ordinal; null: not there
  std::vector<Tensor*> again_;    // those that a replay has made
  std::uint64_t now_ns_ = 0;
  StreamRef reader_;
  Event ended_;
};

}  // namespace headwater::replay
