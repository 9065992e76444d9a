#include "headwater/runtime/runtime.h"

#include "headwater/base/bytes.h"
#include "headwater/device/sim/clock.h"
#include "headwater/device/sim/sim_device.h"
#include "headwater/device/sim/sim_host_memory.h"
#include "support/faulty_host_memory.h"
#include "support/recording_listener.h"
#include "support/sim_device_memory.h"
#include "support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kDeviceBytes = 8_MiB;

class RuntimeTest : public testing::Test {
 protected:
  void start(const Options& options) {
    Machine machine;
    machine.device =
        std::make_unique<sim::Device>(clock_, sim::Options{.capacity = kDeviceBytes, .link = {}});
    machine.host.push_back(std::make_unique<support::FaultyHostMemory>(pinned_));
    machine.host.push_back(std::make_unique<sim::HostMemory>(256_MiB, Tier::kHost));
    machine.host_bytes = 128_MiB;
    first_host_ = static_cast<support::FaultyHostMemory*>(machine.host.front().get());
    memory_ = std::make_unique<support::SimDeviceMemory>(*machine.device);
    runtime_ = std::make_unique<Runtime>(options, std::move(machine), *memory_, listener_);
  }

  Tensor& make(std::size_t bytes) {
    TensorCache& cache = runtime_->cache();
    const MutexLock lock(cache.mutex());
    Reservation charge = cache.reserve({.new_bytes = bytes}, kDefaultStream);
    Buffer buffer = memory_->try_allocate(bytes, kDefaultStream);
    return cache.adopt(std::move(buffer), std::move(charge), this, kDefaultStream);
  }

  Report report() const {
    Report report = runtime_->report();
    report.moves.stall_ns = 0;  // both differ from run to run
    report.stalls.clear();
    return report;
  }

  sim::Clock clock_;
  sim::HostMemory pinned_{256_MiB};
  support::FaultyHostMemory* first_host_ = nullptr;
  std::unique_ptr<support::SimDeviceMemory> memory_;
  std::unique_ptr<Runtime> runtime_;
  support::RecordingListener listener_;

  void TearDown() override { listener_.give_up(); }
};

TEST(OptionsTest, ReadsHowToStandBy) {
  EXPECT_EQ(parse_standby_policy("off"), StandbyPolicy::kOff);
  EXPECT_EQ(parse_standby_policy("on"), StandbyPolicy::kOn);
  EXPECT_THROW(parse_standby_policy("On"), InvalidArgument);
}

TEST(OptionsTest, RecomputePoliciesAreReadByName) {
  EXPECT_EQ(parse_recompute_policy("off"), RecomputePolicy::kOff);
  EXPECT_EQ(parse_recompute_policy("auto"), RecomputePolicy::kAuto);
  EXPECT_THROW(parse_recompute_policy("on"), InvalidArgument);
}

TEST_F(RuntimeTest, AFreshRuntimeReportsItsBudgetAndNothingElse) {
  start({.budget = 2_MiB});
  EXPECT_EQ(report(), (Report{.budget_bytes = 2_MiB, .moves = {}}));
}

TEST_F(RuntimeTest, TheReportTellsWhereTheBytesAre) {
  start({.budget = 2_MiB});
  make(1_MiB);
  make(1_MiB);
  Tensor& third = make(1_MiB);
  {
    const MutexLock lock(runtime_->cache().mutex());
    runtime_->cache().hold_for_life(third, kDefaultStream);
  }
  EXPECT_EQ(report(),
            (Report{.budget_bytes = 2_MiB,
                    .resident_bytes = 2_MiB,
                    .peak_bytes = 2_MiB,
                    .managed_bytes = 3_MiB,
                    .pinned_bytes = 1_MiB,
                    .host_bytes = 1_MiB,
                    .peak_host_bytes = 1_MiB,
                    .host_slab_bytes = HostPool::kLeastSlabBytes,
                    .peak_host_slab_bytes = HostPool::kLeastSlabBytes,
                    .num_tensors = 3,
                    .moves = {.bytes_offloaded = 1_MiB, .num_offloads = 1}}));
}

TEST_F(RuntimeTest, LoweringTheBudgetOffloadsAtOnce) {
  start({.budget = 4_MiB});
  make(2_MiB);
  make(2_MiB);
  runtime_->set_budget(2_MiB, kDefaultStream);
  EXPECT_EQ(report().resident_bytes, 2_MiB);
  EXPECT_EQ(report().budget_bytes, 2_MiB);
}

TEST_F(RuntimeTest, ABudgetThatTensorsCannotLeaveForIsRefusedAndTheOldOneStays) {
  start({.budget = 4_MiB, .host_budget = 1_MiB});
  make(2_MiB);
  make(2_MiB);
  EXPECT_THROW(runtime_->set_budget(1_MiB, kDefaultStream), OutOfMemory);
  EXPECT_THROW(runtime_->set_budget(Options::kMinimum, kDefaultStream), OutOfMemory);
  EXPECT_EQ(report().budget_bytes, 4_MiB);
  EXPECT_EQ(report().resident_bytes, 4_MiB);
  EXPECT_THROW(make(2_MiB), OutOfMemory);  // as hard as before
}

TEST_F(RuntimeTest, ARaisedBudgetIsUsedByTheNextRequest) {
  start({.budget = 2_MiB});
  EXPECT_THROW(make(3_MiB), OutOfMemory);
  runtime_->set_budget(3_MiB, kDefaultStream);
  make(3_MiB);
  EXPECT_EQ(report().peak_bytes, 3_MiB);
}

TEST_F(RuntimeTest, TheMinimumRefusesNothingAndKeepsNothing) {
  start({.budget = Options::kMinimum});
  make(3_MiB);
  make(2_MiB);
  EXPECT_EQ(report().resident_bytes, 2_MiB);
  EXPECT_EQ(report().peak_bytes, 3_MiB);
  EXPECT_EQ(report().budget_bytes, 0U);
}

TEST_F(RuntimeTest, ABudgetSetLaterIsHard) {
  start({.budget = Options::kMinimum});
  runtime_->set_budget(1_MiB, kDefaultStream);
  EXPECT_THROW(make(2_MiB), OutOfMemory);
  runtime_->set_budget(Options::kMinimum, kDefaultStream);
  make(2_MiB);
}

TEST_F(RuntimeTest, ABudgetOfNothingIsRefusedAndTheMinimumNamed) {
  try {
    start({.budget = 0});
    FAIL() << "not refused";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("Options::kMinimum"));
  }
}

TEST_F(RuntimeTest, ABudgetAboveTheDeviceIsRefused) {
  start({.budget = kDeviceBytes});
  EXPECT_THROW(start({.budget = kDeviceBytes + 1}), InvalidArgument);
}

TEST_F(RuntimeTest, ARefusedBudgetLeavesTheOldOneInForce) {
  start({.budget = 2_MiB});
  EXPECT_THROW(runtime_->set_budget(0, kDefaultStream), InvalidArgument);
  EXPECT_THROW(runtime_->set_budget(kDeviceBytes + 1, kDefaultStream), InvalidArgument);
  EXPECT_EQ(report().budget_bytes, 2_MiB);
  EXPECT_THROW(make(3_MiB), OutOfMemory);
}

TEST_F(RuntimeTest, ThePeakStartsAgainFromWhatIsUsedNow) {
  start({.budget = 4_MiB});
  make(4_MiB);
  runtime_->set_budget(1_MiB, kDefaultStream);
  runtime_->reset_peak();
  EXPECT_EQ(report().peak_bytes, 0U);
}

TEST_F(RuntimeTest, ClosingGivesEveryTensorAndAllHostMemoryBack) {
  start({.budget = 2_MiB});
  make(2_MiB);
  make(2_MiB);
  runtime_->close(kDefaultStream);
  EXPECT_EQ(listener_.returned().size(), 2U);
  EXPECT_EQ(report().num_tensors, 0U);
  EXPECT_EQ(report().resident_bytes, 0U);
  EXPECT_EQ(report().host_bytes, 0U);
  EXPECT_EQ(report().host_slab_bytes, 0U);
  EXPECT_EQ(pinned_.used_bytes(), 0U);
}

TEST_F(RuntimeTest, ClosingWithoutRoomThrowsAndLosesNothing) {
  start({.budget = 4_MiB});
  for (int i = 0; i < 3; ++i) {
    make(3_MiB);
  }
  EXPECT_THROW(runtime_->close(kDefaultStream), OutOfMemory);
  EXPECT_EQ(report().num_tensors, 3U);
  EXPECT_LE(report().resident_bytes, 4_MiB);
}

TEST_F(RuntimeTest, AllHostMemoryTogetherStaysWithinTheHostBudget) {
  start({.budget = 1_MiB, .host_budget = 2_MiB});
  make(1_MiB);
  make(1_MiB);
  make(1_MiB);
  EXPECT_EQ(report().host_bytes, 2_MiB);
  EXPECT_THROW(make(1_MiB), OutOfMemory);
  EXPECT_EQ(report().host_bytes, 2_MiB);
}

TEST_F(RuntimeTest, WhatTheHostBudgetLeavesNoRoomForGoesToDisk) {
  const support::TemporaryFolder folder;
  start({.budget = 1_MiB, .host_budget = 2_MiB, .disk = folder.path().string()});
  for (int i = 0; i < 5; ++i) {
    make(1_MiB);
  }
  EXPECT_EQ(report().host_bytes, 2_MiB);
  EXPECT_EQ(report().disk_bytes, 2_MiB);
  EXPECT_EQ(report().moves.bytes_stowed, 2_MiB);
  runtime_->close(kDefaultStream);
  EXPECT_EQ(listener_.returned().size(), 5U);
  EXPECT_EQ(report().disk_bytes, 0U);
  EXPECT_EQ(report().moves.bytes_recalled, 2_MiB);
}

TEST_F(RuntimeTest, BytesOnDiskStayWithinTheDiskBudget) {
  const support::TemporaryFolder folder;
  start({.budget = 1_MiB,
         .host_budget = 1_MiB,
         .disk = folder.path().string(),
         .disk_budget = 1_MiB});
  make(1_MiB);
  make(1_MiB);
  make(1_MiB);
  EXPECT_THROW(make(1_MiB), OutOfMemory);
  EXPECT_EQ(report().disk_bytes, 1_MiB);
  EXPECT_EQ(report().num_tensors, 3U);
}

TEST_F(RuntimeTest, AnUnusableDiskIsRefused) {
  const support::TemporaryFolder folder;
  EXPECT_THROW(start({.disk = (folder.path() / "absent").string()}), InvalidArgument);
  EXPECT_THROW(start({.disk = folder.path().string(), .disk_budget = 0}), InvalidArgument);
  EXPECT_THROW(start({.disk_budget = 1_MiB}), InvalidArgument);
}

TEST_F(RuntimeTest, WithoutAHostBudgetTheMachineSaysHowMuchItHas) {
  start({.budget = 1_MiB});
  make(1_MiB);
  EXPECT_EQ(runtime_->report().host_bytes, 0U);
  for (int i = 0; i < 128; ++i) {
    make(1_MiB);
  }
  EXPECT_EQ(report().host_bytes, 128_MiB);
  EXPECT_THROW(make(1_MiB), OutOfMemory);
}

TEST_F(RuntimeTest, WhereNothingCanBePinnedPageableMemoryServesWithOneWarning) {
  start({.budget = 1_MiB});
  first_host_->fail_from_now();
  testing::internal::CaptureStderr();
  for (int i = 0; i < 16; ++i) {
    make(1_MiB);
  }
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(report().host_bytes, 15_MiB);
  EXPECT_EQ(pinned_.used_bytes(), 0U);
  EXPECT_THAT(told, testing::StartsWith("headwater warning: The system pins no more host memory"));
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1);
}

TEST_F(RuntimeTest, PinningIsTriedAgainAfterAStep) {
  start({.budget = 1_MiB, .log_level = LogLevel::kOff});
  first_host_->fail_from_now();
  make(1_MiB);
  make(1_MiB);
  first_host_->succeed_from_now();
  for (int i = 0; i < 4; ++i) {
    make(1_MiB);
  }
  EXPECT_EQ(pinned_.used_bytes(), 0U);
  runtime_->end_step();
  make(1_MiB);
  EXPECT_EQ(pinned_.used_bytes(), HostPool::kLeastSlabBytes);
}

TEST_F(RuntimeTest, HostMemoryThatNoStepNeedsAnyMoreGoesBack) {
  start({.budget = 1_MiB});
  std::vector<Tensor*> tensors;
  for (int i = 0; i < 33; ++i) {
    tensors.push_back(&make(1_MiB));
  }
  EXPECT_EQ(report().host_slab_bytes, 32_MiB);
  for (Tensor* tensor : tensors) {
    const MutexLock lock(runtime_->cache().mutex());
    const Buffer freed = runtime_->cache().forget(*tensor);
  }
  for (std::size_t i = 0; i <= PeakWindow::kSteps; ++i) {
    clock_.advance(1'000'000'000);
    runtime_->end_step();
  }
  EXPECT_LE(report().host_slab_bytes, HostPool::kLeastSlabBytes);
  EXPECT_EQ(report().peak_host_slab_bytes, 32_MiB);
  runtime_->reset_peak();
  EXPECT_LE(report().peak_host_slab_bytes, HostPool::kLeastSlabBytes);
}

TEST_F(RuntimeTest, TheReportNamesTheWorstStalls) {
  start({.budget = 1_MiB});
  make(1_MiB);
  make(1_MiB);
  const Report report = runtime_->report();
  ASSERT_EQ(report.stalls.size(), 1U);
  EXPECT_EQ(report.stalls[0].direction, Direction::kToHost);
  EXPECT_EQ(report.stalls[0].tensor_bytes, 1_MiB);
}

}  // namespace
}  // namespace headwater
