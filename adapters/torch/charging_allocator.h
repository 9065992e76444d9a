#pragma once

#include "headwater/base/mutex.h"
#include "headwater/memory/budget.h"

#include <c10/core/Allocator.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <unordered_map>

namespace headwater::adapter {

/// Who decides whether bytes may be allocated now.
class AllocationGate {
 public:
  AllocationGate() = default;
  virtual ~AllocationGate() = default;
  AllocationGate(const AllocationGate&) = delete;
  AllocationGate& operator=(const AllocationGate&) = delete;

  /// Charges the bytes, offloading for them; throws when they cannot fit.
  [[nodiscard]] virtual Reservation admit(std::size_t bytes) = 0;
  virtual std::size_t smallest_charged() const = 0;
};

/// Stands before the CPU allocator while CPU tensors are managed: every allocation is charged
/// against the budget before it happens, inside operators too.
///
/// PyTorch keeps pointers to allocators for good, so there is one for the process; without a gate
/// it only passes on. Kernels also ask for bare addresses (raw_allocate), so a block's charge is
/// found by its address, not through a context of our own.
class ChargingAllocator final : public c10::Allocator {
 public:
  /// Puts the allocator in front, asking `gate`, which lives as long as any block it admitted.
  static void install(std::shared_ptr<AllocationGate> gate);
  static void uninstall();

  static c10::DeleterFnPtr deleter();
  /// Whether the block was allocated under the gate in force now.
  static bool made_in_this_session(const c10::DataPtr& pointer);
  /// The charge of a block this allocator made, once; empty for any other.
  static Reservation take_charge(const c10::DataPtr& pointer);

  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override { return deleter(); }
  void copy_data(void* target, const void* source, std::size_t bytes) const override;

 private:
  /// What stands behind a charged address.
  struct Block {
    c10::DeleterFnPtr free_with = nullptr;
    std::shared_ptr<AllocationGate> gate;  // keeps the budget alive behind the charge
    Reservation charge;
  };

  static ChargingAllocator& instance();
  static void free_block(void* address);
  Block extract(void* address) HEADWATER_EXCLUDES(mutex_);

  std::atomic<c10::Allocator*> base_{nullptr};
  std::atomic<std::shared_ptr<AllocationGate>> gate_;
  Mutex mutex_;
  std::unordered_map<void*, Block> blocks_ HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater::adapter
