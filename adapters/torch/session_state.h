#pragma once

#include "charging_allocator.h"
#include "headwater/offload/gap_allowance.h"
#include "headwater/runtime/runtime.h"
#include "headwater/torch.h"
#include "lineage.h"
#include "op_traits.h"
#include "pending_work.h"
#include "standby.h"
#include "storage_book.h"
#include "tensor_walk.h"
#include "torch_memory.h"
#include "turns.h"
#include "unseen_bytes.h"
#include "wish_book.h"
#include "working_sets.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

namespace headwater::adapter {

/// The device and the host memory behind it.
Machine machine_for(c10::Device device);

/// Everything one session owns, wired in construction order. Holds and charged blocks keep it
/// alive after the session has closed. Thread-safe.
class SessionState final : public AllocationGate {
 public:
  SessionState(const Options& options, c10::Device device);

  /// Pins every storage of the tensor; counts as a write.
  std::vector<Pin> pin(const at::Tensor& tensor);
  std::vector<Pin> pin(c10::StorageImpl& storage);
  /// Keeps the storage on the device until the step ends, or for the rest of its life.
  void hold_until_step_ends(c10::StorageImpl& storage);
  void hold_for_life(c10::StorageImpl& storage);
  void end_step();
  /// Unpins what finished collectives have left pinned.
  void release_finished_work();
  /// Adopts storages that operators made while nobody looked. REQUIRES: no operator runs.
  void take_in(const std::vector<c10::intrusive_ptr<c10::StorageImpl>>& storages);
  /// Drops all holds it keeps itself and returns every tensor to its storage.
  void close();

  Reservation admit(std::size_t bytes) override;
  std::size_t smallest_charged() const override { return runtime_.options().min_tensor_bytes; }
  SessionStats stats();

  c10::Device device() const { return memory_.device(); }
  TorchMemory& memory() { return memory_; }
  StorageBook& book() { return book_; }
  Runtime& runtime() { return runtime_; }
  TensorCache& cache() { return runtime_.cache(); }
  OpTable& ops() { return ops_; }
  WorkingSets& working_sets() { return working_sets_; }
  PendingWork& pending_work() { return pending_work_; }
  Turns& turns() { return turns_; }
  Standby& standby() { return standby_; }
  Lineage& lineage() { return lineage_; }
  WishBook& wishes() { return wishes_; }
  /// What becomes of tensors that operators make, from now on; null: measured times decide alone.
  void set_policy(std::shared_ptr<const WishBook::Policy> policy);

  /// Whether room for what an operator allocates must be made before it runs. On the CPU the
  /// allocator asks when it is allocated, which is too late only where operators take turns;
  /// elsewhere there is nobody to ask, so it is predicted once the device is half full, and
  /// always where it may be anything or only shapes tell.
  bool must_predict(const OpTraits& op) {
    if (device().is_cpu()) {
      return turns_.are_needed();
    }
    const bool half_full =
        2 * (runtime_.budget().used() + unseen_bytes()) > runtime_.budget().limit();
    return half_full || op.tensors.empty() || op.growth == Growth::kByShape ||
           working_sets_.is_unknown(op.workspace);
  }
  /// See UnseenBytes, with what is kept free for gaps. The CPU has only the latter, since every
  /// allocation is charged there.
  std::size_t unseen_bytes() const { return unseen_.now() + gaps_.bytes(); }
  void look_for_unseen_bytes() {
    if (const std::optional<AllocatorCount> count = working_sets_.count()) {
      unseen_.look(count->now, runtime_.budget().used());
    }
  }
  /// REQUIRES: nobody stands by.
  void set_budget(std::size_t bytes);

  /// Names of operators by key, for whoever keeps traces; null while nobody does.
  /// REQUIRES: the cache's mutex.
  std::map<OpKey, std::string>* op_names() { return op_names_; }
  void set_op_names(std::map<OpKey, std::string>* names) { op_names_ = names; }

  /// Operators that are let through unboxed count themselves, see ThreadOps.
  void count_op() { num_ops_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t num_ops() const { return num_ops_.load(std::memory_order_relaxed); }
  /// Sends away so many bytes of what no operator uses: the device has no room although the budget
  /// has, so its memory is in pieces or others have taken it.
  void evacuate(std::size_t bytes);

  void count_replayed_op() { num_replayed_ops_.fetch_add(1, std::memory_order_relaxed); }
  void count_chunked_op() { num_chunked_ops_.fetch_add(1, std::memory_order_relaxed); }

 private:
  /// Pins a storage; an empty pin where it is not managed.
  Pin pin_now(c10::StorageImpl& storage, Adoption adoption);
  /// Makes again what was given up, all of it, and forgets how.
  void replay_all();
  void release_step_pins() HEADWATER_EXCLUDES(step_mutex_);
  /// Of the budget, by a plan, beside what is kept free for gaps.
  std::size_t bytes_to_leave_free() HEADWATER_REQUIRES(cache().mutex());
  /// Keeps more of the budget free if the device's memory is in too many pieces.
  void watch_gaps(std::size_t reserve) HEADWATER_REQUIRES(cache().mutex());
  /// The tensor behind a storage, adopted if it may be; null once the session has closed.
  Tensor* managed(c10::StorageImpl& storage, Adoption adoption) HEADWATER_REQUIRES(cache().mutex());

  TorchMemory memory_;
  StorageBook book_;
  Runtime runtime_;
  OpTable ops_;
  WorkingSets working_sets_;
  PendingWork pending_work_;
  Turns turns_;
  const std::uint64_t let_through_before_;  // operators, by earlier sessions
  std::atomic<std::uint64_t> num_ops_{0};
  Standby standby_;
  Lineage lineage_;
  WishBook wishes_;
  std::atomic<bool> closed_{false};  // set under the cache's mutex
  Mutex step_mutex_;
  std::unordered_map<Tensor*, Pin> step_pins_ HEADWATER_GUARDED_BY(step_mutex_);
  GapAllowance gaps_;  // grows under the cache's mutex
  UnseenBytes unseen_;
  std::map<OpKey, std::string>* op_names_ = nullptr;  // guarded by the cache's mutex
  std::atomic<std::uint64_t> num_replayed_ops_{0};
  std::atomic<std::uint64_t> num_chunked_ops_{0};
  std::atomic<std::uint64_t> num_evacuations_{0};
  std::atomic<std::uint64_t> bytes_evacuated_{0};
};

/// A tensor over the same bytes that owns a hold on them: exported as an array or a capsule, it
/// keeps them in place for as long as anybody refers to it.
at::Tensor held_alias(const at::Tensor& tensor, const std::shared_ptr<SessionState>& session);

}  // namespace headwater::adapter
