#include "headwater/offload/stall_book.h"

#include "headwater/base/bytes.h"
#include "support/cache_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using support::CacheRig;
using testing::ElementsAre;
using testing::IsEmpty;

using Row = std::tuple<std::string, Direction, std::size_t, std::uint64_t>;

/// What does not differ from run to run.
std::vector<Row> rows(const std::vector<Stall>& stalls) {
  std::vector<Row> rows;
  for (const Stall& stall : stalls) {
    rows.emplace_back(stall.op, stall.direction, stall.tensor_bytes, stall.num_waits);
  }
  return rows;
}

class StallBookTest : public testing::Test {
 protected:
  void add(std::string_view op, std::size_t bytes) {
    const StallBook::Wait wait(book_, total_ns_, op);
    tensor_.bytes = bytes;
    book_.add(Direction::kToDevice, tensor_, StallBook::Clock::now());
  }

  StallBook book_;
  Tensor tensor_;
  std::uint64_t total_ns_ = 0;
  Costs links_{.op_ns = {}, .fetch = {.bytes_per_s = 1.0, .latency_ns = 5}, .offload = {}};
};

TEST_F(StallBookTest, TensorsOfOneSizeForOneOperatorAreCountedTogether) {
  add("mm", 100);
  add("mm", 100);
  add("mm", 300);
  EXPECT_THAT(rows(book_.worst(8, &links_)),
              ElementsAre(Row("mm", Direction::kToDevice, 300, 1),
                          Row("mm", Direction::kToDevice, 100, 2)));
}

TEST_F(StallBookTest, AWaitIsAtLeastWhatTheBytesTakeOnTheLink) {
  add("mm", 100);
  add("mm", 100);
  const std::vector<Stall> stalls = book_.worst(1, &links_);
  EXPECT_EQ(stalls[0].wait_ns, 200'000'000'000 + 10);
  EXPECT_EQ(book_.worst(1, nullptr)[0].wait_ns, stalls[0].host_ns);
}

TEST_F(StallBookTest, OnlyTheWorstAreTold) {
  for (std::size_t bytes = 1; bytes <= 10; ++bytes) {
    add("add", bytes);
  }
  EXPECT_THAT(
      rows(book_.worst(2, &links_)),
      ElementsAre(Row("add", Direction::kToDevice, 10, 1), Row("add", Direction::kToDevice, 9, 1)));
}

TEST_F(StallBookTest, BeyondSoManyKindsTheRestIsCountedTogether) {
  for (std::size_t i = 0; i < StallBook::kMostKinds + 7; ++i) {
    add("mm", i + 1);
  }
  EXPECT_THAT(rows(book_.worst(1, &links_)),
              ElementsAre(Row(StallBook::kOthers, Direction::kToDevice, 0, 7)));
}

TEST_F(StallBookTest, MovesAheadOfNeedAreLeftOutWhereNobodyWaited) {
  book_.add_if_noticed(
      Direction::kToDevice, tensor_, StallBook::Clock::now() + std::chrono::seconds(1));
  EXPECT_THAT(book_.worst(8, nullptr), IsEmpty());
  book_.add_if_noticed(
      Direction::kToDevice, tensor_, StallBook::Clock::now() - std::chrono::seconds(1));
  EXPECT_EQ(book_.worst(8, nullptr).size(), 1U);
}

class StallsOfACacheTest : public testing::Test {
 protected:
  std::vector<Row> stalls() {
    const MutexLock lock(rig_.cache.mutex());
    return rows(rig_.cache.stalls().worst(8, nullptr));
  }

  void run(std::string_view op, Tensor& tensor) {
    const std::vector<Use> uses{{&tensor, AccessKind::kRead}};
    static_cast<void>(rig_.acquire(uses, {.op = op}));
    rig_.release(uses);
  }

  CacheRig rig_{{.budget = 4_KiB}};
};

TEST_F(StallsOfACacheTest, NothingIsNotedWhileEverythingFits) {
  Tensor& tensor = rig_.make(4_KiB, 1);
  run("mm", tensor);
  EXPECT_THAT(stalls(), IsEmpty());
}

TEST_F(StallsOfACacheTest, AnOperatorWaitsForWhatIsFetchedAndForWhatMakesRoom) {
  Tensor& first = rig_.make(2_KiB, 1);
  rig_.make(3_KiB, 2);  // "make" sends the first away
  run("mm", first);     // and "mm" the second
  EXPECT_THAT(stalls(),
              testing::UnorderedElementsAre(Row("make", Direction::kToHost, 2_KiB, 1),
                                            Row("mm", Direction::kToHost, 3_KiB, 1),
                                            Row("mm", Direction::kToDevice, 2_KiB, 1)));
}

TEST_F(StallsOfACacheTest, WhatMakesRoomForALowerBudgetIsOfNoOperator) {
  rig_.make(4_KiB, 1);
  rig_.set_budget(1_KiB);
  EXPECT_THAT(stalls(), ElementsAre(Row(StallBook::kNoOp, Direction::kToHost, 4_KiB, 1)));
}

TEST_F(StallsOfACacheTest, AMoveAheadOfNeedThatNobodyWaitsForIsNoStall) {
  Tensor& tensor = rig_.make(2_KiB, 1);
  ASSERT_TRUE(rig_.start_write_back(tensor));
  rig_.let_copies_end();
  EXPECT_EQ(rig_.reclaim(2_KiB), 2_KiB);
  EXPECT_THAT(stalls(), IsEmpty());
}

}  // namespace
}  // namespace headwater
