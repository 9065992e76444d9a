#pragma once

#include "headwater/offload/conductor.h"
#include "headwater/offload/gap_allowance.h"
#include "support/cache_rig.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace headwater::support {

/// A few operators of a network, one an activation.
struct SimLayer {
  std::vector<std::size_t> activations;  // bytes; backward uses them up in reverse
  std::uint64_t forward_ns = 0;          // of each operator
  std::uint64_t backward_ns = 0;
  std::size_t parameter_bytes = 0;
  std::size_t statistic_bytes = 0;   // read and written by the last operator of forward
  Replay replay = Replay::kRefused;  // of forward's operators
  std::size_t kept_bytes = 0;        // made by one operator of forward more, never used, freed late
};

struct SimNetwork {
  std::vector<SimLayer> layers;
  double link_bytes_per_s = 1e9;     // each way
  std::uint64_t latency_ns = 0;      // of each copy
  double update_bytes_per_s = 1e11;  // of the parameters, by the optimizer
};

/// Twenty-four equal layers: attention and feed-forward, a head whose results are a sixth of all
/// bytes, and an optimizer that keeps two states a parameter.
SimNetwork sim_gpt();
/// Activations that shrink by half at every stage while their number grows; hardly any parameters.
SimNetwork sim_resnet();
/// Layers that differ in nothing: a tensor crosses the link in 65 us, an operator takes `op_ns`.
SimNetwork sim_deep(std::uint64_t op_ns);

/// Layers that make a tensor of 64 KiB and one of 512 KiB each; parameters have 64 KiB. A copy
/// takes 8 us to begin, as long as seven of the small tensors need.
SimNetwork sim_mixed();

/// Operators that take long, each followed by six that take a tenth of the time that moving what
/// they make would, and can run again.
SimNetwork sim_cheap();

/// Trains a network in simulated time: every number repeats exactly.
class SimTraining {
 public:
  static constexpr std::size_t kAmple = std::size_t{1} << 30;

  /// A device that has less than the budget refuses, as one does whose memory is in pieces. What an
  /// operator makes is tried again then, after others have left, and an allowance is kept.
  SimTraining(SimNetwork network,
              std::size_t budget,
              std::size_t device_bytes = kAmple,
              RecomputePolicy recompute = RecomputePolicy::kAuto);

  /// From now on forward and backward have no operator of the step before, as in a network that
  /// changes.
  void change_every_step() { changes_ = true; }
  /// Nanoseconds on the device since the end of the step before.
  std::uint64_t step();

  Statistics statistics() { return rig_.statistics(); }
  std::size_t peak_bytes() const { return rig_.budget.peak(); }
  std::uint64_t num_refused() const { return rig_.memory.num_refused(); }
  std::uint64_t num_plans() const { return conductor_.num_plans(); }
  std::size_t gap_bytes() const { return gaps_.bytes(); }
  std::uint64_t expected_ns();
  std::size_t peak_stored_bytes() const { return rig_.first_pool.peak_block_bytes(); }
  std::size_t slab_bytes() const { return rig_.first_pool.slab_bytes_held(); }

  /// What must be away at the peak leaves during forward and comes back during the rest.
  static double bound_ns(const SimNetwork& network, std::size_t plain_peak, std::size_t budget);
  /// Of a step with room for all.
  static std::size_t plain_peak(const SimNetwork& network);

 private:
  struct State {
    Tensor* parameter = nullptr;
    Tensor* first = nullptr;
    Tensor* second = nullptr;
    Tensor* statistic = nullptr;
    Tensor* gradient = nullptr;  // of the running step
    Tensor* kept = nullptr;
    std::vector<Tensor*> activations;
  };

  void forward();
  void backward();
  void update();
  Tensor* make(std::size_t bytes);
  void forget(Tensor& tensor);
  /// Makes tensors again that were given up.
  void replay(const std::vector<Use>& uses);
  void end_step();
  struct Call {
    std::uint64_t duration_ns = 0;
    std::vector<Use> uses;
    std::size_t makes = 0;
    Replay replay = Replay::kRefused;
  };

  /// Runs an operator on the default stream; null when it makes nothing.
  Tensor* run(const Call& call);

  const SimNetwork network_;
  CacheRig rig_;
  Conductor conductor_;
  GapAllowance gaps_;
  std::vector<State> states_;
  std::map<Tensor*, Call> recipes_;
  bool changes_ = false;
  Phase phase_ = Phase::kUnknown;
  std::uint64_t num_runs_ = 0;  // in this step
  std::uint64_t num_steps_ = 0;
  std::uint64_t now_ns_ = 0;
  Event ended_;
};

}  // namespace headwater::support
