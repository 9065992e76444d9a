#pragma once

#include "headwater/base/mutex.h"
#include "headwater/runtime/options.h"
#include "noted_storages.h"
#include "op_traits.h"
#include "tensor_walk.h"
#include "working_sets.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/FunctionRef.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace headwater::adapter {

class SessionState;

/// Lets operators through while everything fits twice over.
///
/// Note [Standing by]: once a step has stayed below half of the budget, operators run as they would
/// without us: nothing is pinned, adopted or measured, and what they make is only noted. Each is
/// taken to allocate more than such operators do; when the sum of that reaches what was left of the
/// half, the allocator is asked what is really in use. If that is too much, standing by ends before
/// the operator runs, and everything noted that is still alive is adopted, so that it can be moved.
/// Nothing may move meanwhile, since operators on other threads have not pinned what they use:
/// it begins and ends while no operator runs, and whatever could move a tensor ends it first.
class Standby final {
 public:
  /// What has been noted and is alive, not counting what has been adopted since.
  struct Noted {
    std::size_t bytes = 0;
    std::size_t num_tensors = 0;
  };

  Standby(SessionState& session, const Options& options);

  bool on() const { return on_.load(std::memory_order_relaxed); }
  /// Whether an operator may be let through that allocates no more than `bytes`.
  bool admits(std::size_t bytes) {
    const auto wanted = static_cast<std::int64_t>(std::min(bytes, kAllThereIs));
    return allowance_.fetch_sub(wanted, std::memory_order_relaxed) >= wanted || admits_now(wanted);
  }
  /// The same from its arguments, once and for all: one that is refused ends standing by. Where
  /// steps are like that it soon does not begin again, since that costs more than it saves.
  bool admits(const c10::OperatorHandle& op, const OpTraits& traits, Arguments arguments);
  /// What results take where only the shape rule tells; all there is where that does not either.
  std::size_t result_bytes(const c10::OperatorHandle& op,
                           OpKey key,
                           c10::function_ref<torch::jit::Stack()> arguments)
      HEADWATER_EXCLUDES(mutex_);
  /// Counts bytes that are allocated without an operator having asked for them.
  void count_allocated(std::size_t bytes) {
    allowance_.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  }
  /// Remembers what an operator that was let through has made.
  void note(const at::Tensor& result);
  void note(c10::StorageImpl& storage, Adoption adoption);
  Noted noted();
  /// The most bytes that were in use while standing by, as far as the allocator knows.
  std::size_t peak() const;

  /// Begins if the session allows it and no operator runs at the moment.
  void try_begin();
  /// Ends it; returns what has been noted and is alive. REQUIRES: no operator runs.
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> end();
  void reset_peak();

 private:
  static constexpr std::size_t kAllThereIs = std::size_t{1} << 56;
  static constexpr std::size_t kMostResults = 1 << 16;
  static constexpr int kMostRefusals = 3;

  friend class NoStandby;

  bool may_begin();
  /// More than an operator allocates.
  std::size_t most_new_bytes(const c10::OperatorHandle& op,
                             const OpTraits& traits,
                             Arguments arguments);
  /// The same as admits() for one that has used up the allowance: looks what is really left.
  bool admits_now(std::int64_t bytes) HEADWATER_EXCLUDES(looking_);
  void begin_peak();

  SessionState& session_;
  const StandbyPolicy policy_;
  const std::size_t min_tensor_bytes_;
  const c10::Device device_;
  // What every operator that is let through looks at comes first, side by side.
  std::atomic<bool> on_{false};             // changed while no operator runs
  std::atomic<std::int64_t> allowance_{0};  // bytes to allocate until the allocator is asked
  NotedStorages noted_;
  std::atomic<int> num_blocks_{0};  // reasons not to begin
  std::atomic<int> num_refusals_{0};
  std::atomic<std::size_t> peak_before_{0};  // of the allocator, when this began
  std::atomic<std::size_t> peak_kept_{0};    // of the times before
  Mutex looking_;                            // held by whoever asks the allocator
  Mutex mutex_;
  std::unordered_map<OpKey, std::size_t> result_bytes_ HEADWATER_GUARDED_BY(mutex_);
};

/// Lets running operators end, ends standing by and adopts what was noted. False when it goes on:
/// inside an operator, or when operators do not end.
[[nodiscard]] bool end_standby(SessionState& session);

/// Ends standing by and keeps it from beginning while this lives: for whatever moves tensors or
/// hands out their addresses.
class NoStandby {
 public:
  explicit NoStandby(SessionState& session);
  ~NoStandby();
  NoStandby(const NoStandby&) = delete;
  NoStandby& operator=(const NoStandby&) = delete;
  NoStandby(NoStandby&&) = delete;
  NoStandby& operator=(NoStandby&&) = delete;

  /// False when it could not be ended.
  bool ended() const { return ended_; }

 private:
  Standby& standby_;
  bool ended_ = false;
};

}  // namespace headwater::adapter
