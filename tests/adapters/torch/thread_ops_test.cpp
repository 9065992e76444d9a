#include "thread_ops.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace headwater::adapter {
namespace {

TEST(ThreadOpsTest, OperatorsOneInsideTheOtherRunUntilTheOutermostEnds) {
  ThreadOps& here = ThreadOps::here();
  here.begin();
  here.begin();
  here.end();
  EXPECT_EQ(here.num_running(), 1);
  EXPECT_TRUE(ThreadOps::any_running());
  here.end();
  EXPECT_FALSE(ThreadOps::any_running());
}

TEST(ThreadOpsTest, OperatorsOfOtherThreadsAreSeen) {
  std::atomic<bool> begun{false};
  std::atomic<bool> may_end{false};
  std::thread thread([&] {
    ThreadOps::here().begin();
    begun.store(true);
    begun.notify_one();
    may_end.wait(false);
    ThreadOps::here().end();
  });
  begun.wait(false);
  EXPECT_TRUE(ThreadOps::any_running());
  EXPECT_EQ(ThreadOps::here().num_running(), 0);
  may_end.store(true);
  may_end.notify_one();
  thread.join();
  EXPECT_FALSE(ThreadOps::any_running());
}

TEST(ThreadOpsTest, WhatThreadsHaveCountedIsKeptAfterTheyEnd) {
  const std::uint64_t before = ThreadOps::num_let_through();
  for (int i = 0; i < 3; ++i) {
    std::thread([] { ThreadOps::here().count_let_through(); }).join();
  }
  ThreadOps::here().count_let_through();
  EXPECT_EQ(ThreadOps::num_let_through(), before + 4);
}

TEST(ThreadOpsTest, AThreadTakesOverWhatOneThatHasEndedLeft) {
  const ThreadOps* const own = &ThreadOps::here();
  const ThreadOps* first = nullptr;
  const ThreadOps* second = nullptr;
  std::thread([&first] { first = &ThreadOps::here(); }).join();
  std::thread([&second] { second = &ThreadOps::here(); }).join();
  EXPECT_EQ(first, second);
  EXPECT_NE(first, own);
}

}  // namespace
}  // namespace headwater::adapter
