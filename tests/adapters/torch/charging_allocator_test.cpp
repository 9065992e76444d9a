#include "charging_allocator.h"

#include "headwater/base/bytes.h"
#include "headwater/base/error.h"

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace headwater::adapter {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

/// Admits what its budget holds.
class Gate final : public AllocationGate {
 public:
  explicit Gate(std::size_t limit) : budget(limit) {}

  Reservation admit(std::size_t bytes) override {
    std::optional<Reservation> charge = budget.try_reserve(bytes);
    if (!charge) {
      throw OutOfMemory("Out of memory: the gate is closed");
    }
    return std::move(*charge);
  }
  std::size_t smallest_charged() const override { return 1_KiB; }

  Budget budget;
};

class ChargingAllocatorTest : public testing::Test {
 protected:
  void SetUp() override { ChargingAllocator::install(gate_); }
  void TearDown() override {
    ChargingAllocator::uninstall();
    EXPECT_EQ(c10::GetAllocator(c10::kCPU), before_);
  }

  static c10::Allocator& allocator() { return *c10::GetAllocator(c10::kCPU); }

  c10::Allocator* const before_ = c10::GetAllocator(c10::kCPU);
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>(16_KiB);
};

TEST_F(ChargingAllocatorTest, ABlockIsChargedWhileItLives) {
  {
    const c10::DataPtr block = allocator().allocate(4_KiB);
    EXPECT_EQ(gate_->budget.used(), 4_KiB);
    std::memset(block.get(), 1, 4_KiB);
  }
  EXPECT_EQ(gate_->budget.used(), 0U);
}

TEST_F(ChargingAllocatorTest, SmallBlocksAreFree) {
  const c10::DataPtr block = allocator().allocate(1_KiB - 1);
  EXPECT_NE(block.get(), nullptr);
  EXPECT_NE(block.get_deleter(), ChargingAllocator::deleter());
  EXPECT_EQ(gate_->budget.used(), 0U);
}

TEST_F(ChargingAllocatorTest, BareAddressesAreChargedToo) {
  void* const large = allocator().raw_allocate(4_KiB);
  void* const small = allocator().raw_allocate(16);
  EXPECT_EQ(gate_->budget.used(), 4_KiB);
  allocator().raw_deallocate(large);
  allocator().raw_deallocate(small);
  EXPECT_EQ(gate_->budget.used(), 0U);
}

TEST_F(ChargingAllocatorTest, WhatTheGateRefusesIsNotAllocated) {
  EXPECT_THROW(allocator().allocate(17_KiB), OutOfMemory);
  EXPECT_EQ(gate_->budget.used(), 0U);
}

TEST_F(ChargingAllocatorTest, AChargeIsTakenOnce) {
  const c10::DataPtr block = allocator().allocate(4_KiB);
  {
    const Reservation charge = ChargingAllocator::take_charge(block);
    EXPECT_EQ(charge.bytes(), 4_KiB);
    EXPECT_EQ(ChargingAllocator::take_charge(block).bytes(), 0U);
    EXPECT_EQ(gate_->budget.used(), 4_KiB);
  }
  EXPECT_EQ(gate_->budget.used(), 0U);
}

TEST_F(ChargingAllocatorTest, ABlockOfAnotherAllocatorHasNoCharge) {
  const c10::DataPtr block = before_->allocate(4_KiB);
  EXPECT_EQ(ChargingAllocator::take_charge(block).bytes(), 0U);
}

TEST_F(ChargingAllocatorTest, ABlockOutlivesTheAllocatorsTimeInFront) {
  c10::DataPtr block = allocator().allocate(4_KiB);
  ChargingAllocator::uninstall();
  const c10::DataPtr later = allocator().allocate(4_KiB);
  EXPECT_EQ(gate_->budget.used(), 4_KiB);
  block.clear();
  EXPECT_EQ(gate_->budget.used(), 0U);
}

TEST_F(ChargingAllocatorTest, ABlockKeepsItsGateAlive) {
  std::weak_ptr<Gate> gate = gate_;
  c10::DataPtr block = allocator().allocate(4_KiB);
  gate_ = std::make_shared<Gate>(16_KiB);
  ChargingAllocator::install(gate_);
  EXPECT_FALSE(gate.expired());
  block.clear();
  EXPECT_TRUE(gate.expired());
}

TEST_F(ChargingAllocatorTest, InstallingTwiceChargesOnce) {
  ChargingAllocator::install(gate_);
  const c10::DataPtr block = allocator().allocate(4_KiB);
  EXPECT_EQ(gate_->budget.used(), 4_KiB);
}

TEST_F(ChargingAllocatorTest, ThreadsChargeTheSameGate) {
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([] {
        for (int i = 0; i < 500; ++i) {
          std::memset(allocator().allocate(2_KiB).get(), i, 2_KiB);
        }
      });
    }
  }
  EXPECT_EQ(gate_->budget.used(), 0U);
  EXPECT_LE(gate_->budget.peak(), 8_KiB);
}

}  // namespace
}  // namespace headwater::adapter
