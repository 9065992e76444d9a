#pragma once

#include "headwater/memory/budget.h"
#include "headwater/offload/tensor_cache.h"
#include "headwater/pilot/known_order.h"
#include "headwater/tensor/tensor_table.h"
#include "headwater/trace/op_record.h"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace headwater {

/// Moves ahead of need in a step without a plan: one that differs from the last.
///
/// Backward uses what forward has used, in reverse; that order is known once forward has run. What
/// is away is fetched in it, into room that is free. And while forward fills the device, what was
/// used longest ago is copied out beforehand, so that giving it up is free.
/// Called with the cache's mutex held.
class UnplannedMoves final {
 public:
  /// What is known beside backward's order.
  struct Knowledge {
    const Predictor& after;      // what is used once that order is over
    const TensorTable& tensors;  // all that may be moved
    std::size_t reserve;         // bytes of the budget that are for others
  };

  UnplannedMoves(TensorCache& cache, const Budget& budget) : cache_(cache), budget_(budget) {}

  void begin_op(Phase phase, std::span<const Access> uses);
  void end_op(Phase phase, std::span<const Access> made, std::size_t workspace_bytes);
  /// Begins moves for what comes after the operator at hand, every few operators.
  void move(Phase phase, const Knowledge& knowledge, StreamRef stream);
  void end_step();
  /// Forgets all steps.
  void reset();

 private:
  static constexpr unsigned kOpsBetweenMoves = 4;  // looking ahead takes as long as an operator
  static constexpr std::size_t kRecentOps = 32;

  void begin_forward_op(std::span<const Access> uses);
  void begin_backward_op(std::span<const Access> uses) HEADWATER_REQUIRES(cache_.mutex());
  /// The most that an operator has made of late.
  std::size_t headroom() const;
  std::size_t bytes_away() const HEADWATER_REQUIRES(cache_.mutex());
  void fetch(const Knowledge& knowledge, std::size_t room, StreamRef stream)
      HEADWATER_REQUIRES(cache_.mutex());
  void write_back() HEADWATER_REQUIRES(cache_.mutex());

  TensorCache& cache_;
  const Budget& budget_;
  std::vector<KnownOrder::Group> forward_;  // of operators that backward has not come to yet
  KnownOrder backward_;
  bool in_backward_ = false;
  bool host_is_full_ = false;  // it was in this step
  unsigned num_ops_since_ = 0;
  std::array<std::size_t, kRecentOps> recent_new_bytes_{};  // of operators
  std::size_t num_ended_ = 0;
  std::size_t away_bytes_ = 0;   // when the last backward began
  std::size_t away_before_ = 0;  // and the one before it
  std::vector<Coming> coming_;   // kept for its room
};

}  // namespace headwater
