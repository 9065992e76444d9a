#include "headwater/offload/op_sampler.h"

#include "headwater/device/sim/clock.h"
#include "headwater/device/sim/sim_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headwater {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr OpKey kKey(7);

class OpSamplerTest : public testing::Test {
 protected:
  /// An operator that waits for others before it computes.
  void run(OpKey key, Position position, std::uint64_t wait_ns, std::uint64_t compute_ns) {
    device_.compute(kDefaultStream, wait_ns);
    const Event began = sampler_.begin(key, kDefaultStream);
    device_.compute(kDefaultStream, compute_ns);
    sampler_.end(at(position), key, began, kDefaultStream);
  }

  void let_all_end() { device_.synchronize(device_.record(kDefaultStream)); }

  static OpRef at(Position position) { return {StepId(1), position}; }

  sim::Clock clock_;
  sim::Device device_{clock_, {}};
  OpSampler sampler_{device_};
};

TEST_F(OpSamplerTest, TimesAnOperatorWithoutWhatItWaitsFor) {
  run(kKey, 3, 1000, 50);
  let_all_end();
  EXPECT_THAT(sampler_.take_finished(), ElementsAre(OpTime{at(3), kKey, 50}));
  EXPECT_THAT(sampler_.take_finished(), IsEmpty());
}

TEST_F(OpSamplerTest, DoesNotWaitForTheDevice) {
  run(kKey, 0, 0, 50);
  EXPECT_THAT(sampler_.take_finished(), IsEmpty());
  EXPECT_EQ(clock_.now_ns(), 0U);
}

TEST_F(OpSamplerTest, KeysThatAreRememberedInTheSamePlaceAreBothTimedAFewTimes) {
  constexpr OpKey kOther(7 + (1 << 20));
  for (Position i = 0; i < 10; ++i) {
    run(kKey, 2 * i, 1000, 50);
    run(kOther, 2 * i + 1, 1000, 60);
  }
  let_all_end();
  EXPECT_EQ(sampler_.take_finished().size(), 6U);
}

TEST_F(OpSamplerTest, TimesTheFirstFewOfEveryKey) {
  for (Position i = 0; i < 10; ++i) {
    run(kKey, i, 1000, 50);
  }
  run(OpKey(8), 10, 0, 60);
  let_all_end();
  EXPECT_THAT(sampler_.take_finished(),
              ElementsAre(OpTime{at(0), kKey, 50},
                          OpTime{at(1), kKey, 50},
                          OpTime{at(2), kKey, 50},
                          OpTime{at(10), OpKey(8), 60}));
}

TEST_F(OpSamplerTest, StartsOverWhenAsked) {
  for (Position i = 0; i < 10; ++i) {
    run(kKey, i, 1000, 50);
  }
  sampler_.start_over();
  run(kKey, 10, 1000, 40);
  let_all_end();
  EXPECT_EQ(sampler_.take_finished().back(), (OpTime{at(10), kKey, 40}));
}

TEST_F(OpSamplerTest, WhenTheDeviceHadCaughtUpWithTheHostMoreAreTimed) {
  run(kKey, 0, 0, 50);  // begins before it is in the queue
  for (Position i = 1; i < 10; ++i) {
    run(kKey, i, 1000, 50);
  }
  let_all_end();
  EXPECT_EQ(sampler_.take_finished().size(), 4U);
}

TEST_F(OpSamplerTest, ADeviceThatIsNeverBehindIsAskedSoManyTimesOnly) {
  for (Position i = 0; i < 100; ++i) {
    run(kKey, i, 0, 50);
    let_all_end();
  }
  EXPECT_EQ(sampler_.take_finished().size(), 32U);
}

}  // namespace
}  // namespace headwater
