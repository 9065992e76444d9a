#include "charging_allocator.h"

#include <cstdint>
#include <limits>
#include <utility>

namespace headwater::adapter {
namespace {

constexpr std::uint8_t kPriority = std::numeric_limits<std::uint8_t>::max();

}  // namespace

ChargingAllocator& ChargingAllocator::instance() {
  static auto* allocator = new ChargingAllocator();
  return *allocator;
}

void ChargingAllocator::install(std::shared_ptr<AllocationGate> gate) {
  ChargingAllocator& self = instance();
  c10::Allocator* front = c10::GetAllocator(c10::kCPU);
  if (front != &self) {
    self.base_.store(front);
  }
  self.gate_.store(std::move(gate));
  c10::SetAllocator(c10::kCPU, &self, kPriority);
}

void ChargingAllocator::uninstall() {
  ChargingAllocator& self = instance();
  self.gate_.store(nullptr);
  if (c10::GetAllocator(c10::kCPU) == &self) {
    c10::SetAllocator(c10::kCPU, self.base_, kPriority);
  }
}

c10::DeleterFnPtr ChargingAllocator::deleter() {
  return &free_block;
}

bool ChargingAllocator::made_in_this_session(const c10::DataPtr& pointer) {
  ChargingAllocator& self = instance();
  const std::shared_ptr<AllocationGate> gate = self.gate_.load();
  const MutexLock lock(self.mutex_);
  const auto block = self.blocks_.find(pointer.get_context());
  return gate && block != self.blocks_.end() && block->second.gate == gate;
}

Reservation ChargingAllocator::take_charge(const c10::DataPtr& pointer) {
  if (pointer.get_deleter() != &free_block) {
    return {};
  }
  ChargingAllocator& self = instance();
  const std::shared_ptr<AllocationGate> gate = self.gate_.load();
  const MutexLock lock(self.mutex_);
  const auto block = self.blocks_.find(pointer.get_context());
  if (block == self.blocks_.end()) {
    return {};
  }
  // A charge of an earlier session says nothing about this one's budget.
  Reservation charge = std::move(block->second.charge);
  return block->second.gate == gate ? std::move(charge) : Reservation();
}

c10::DataPtr ChargingAllocator::allocate(std::size_t bytes) {
  std::shared_ptr<AllocationGate> gate = gate_.load();
  c10::Allocator& base = *base_.load();
  if (!gate || bytes < gate->smallest_charged()) {
    return base.allocate(bytes);
  }
  Reservation charge = gate->admit(bytes);
  c10::DataPtr inner = base.allocate(bytes);
  void* address = inner.get();
  if (address == nullptr || inner.get_context() != address) {
    return inner;
  }
  Block block{inner.get_deleter(), std::move(gate), std::move(charge)};
  inner.release_context();
  const MutexLock lock(mutex_);
  blocks_.insert_or_assign(address, std::move(block));
  return {address, address, &free_block, inner.device()};
}

void ChargingAllocator::copy_data(void* target, const void* source, std::size_t bytes) const {
  default_copy_data(target, source, bytes);
}

void ChargingAllocator::free_block(void* address) {
  ChargingAllocator& self = instance();
  const Block block = self.extract(address);
  // A small block handed out as a bare address carries the base allocator's own deleter.
  const c10::DeleterFnPtr free_with =
      block.free_with != nullptr ? block.free_with : self.base_.load()->raw_deleter();
  free_with(address);
}

ChargingAllocator::Block ChargingAllocator::extract(void* address) {
  const MutexLock lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) {
    return {};
  }
  Block block = std::move(found->second);
  blocks_.erase(found);
  return block;
}

}  // namespace headwater::adapter
