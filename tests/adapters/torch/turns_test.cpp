#include "turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace headwater::adapter {
namespace {

void give_up() {
  throw std::runtime_error("nobody has ended for long");
}

/// Room for one operator; others must wait.
class OneAtATime {
 public:
  explicit OneAtATime(Turns& turns) : turns_(turns) {}

  std::optional<std::uint64_t> try_begin() {
    const MutexLock lock(mutex_);
    ++num_attempts;
    if (busy_) {
      return turns_.num_ended();
    }
    busy_ = true;
    turns_.begin();
    return std::nullopt;
  }

  void end() {
    const MutexLock lock(mutex_);
    busy_ = false;
    turns_.end();
  }

  std::atomic<int> num_attempts{0};

 private:
  Turns& turns_;
  Mutex mutex_;
  bool busy_ = false;
};

TEST(TurnsTest, AnAttemptThatSucceedsIsMadeOnce) {
  Turns turns;
  OneAtATime room(turns);
  turns.take([&] { return room.try_begin(); }, give_up);
  EXPECT_EQ(room.num_attempts, 1);
  EXPECT_TRUE(turns.others_are_running());
  room.end();
  EXPECT_FALSE(turns.others_are_running());
}

TEST(TurnsTest, AnOperatorWithoutRoomWaitsUntilAnotherHasEnded) {
  Turns turns;
  OneAtATime room(turns);
  turns.take([&] { return room.try_begin(); }, give_up);
  std::atomic<bool> ran{false};
  std::thread other([&] {
    turns.take([&] { return room.try_begin(); }, give_up);
    ran = true;
    room.end();
  });
  while (room.num_attempts < 3) {  // one of ours; the other's first, and the one in the queue
    std::this_thread::yield();
  }
  EXPECT_FALSE(ran);
  room.end();
  other.join();
  EXPECT_TRUE(ran);
}

TEST(TurnsTest, AnErrorEndsTheWaitingAndLeavesTheQueueOpen) {
  Turns turns;
  const auto fail = []() -> std::optional<std::uint64_t> { throw std::runtime_error("no"); };
  EXPECT_THROW(turns.take(fail, give_up), std::runtime_error);
  OneAtATime room(turns);
  turns.take([&] { return room.try_begin(); }, give_up);
  room.end();
}

TEST(TurnsTest, ManyThreadsAllGetTheirTurn) {
  Turns turns;
  OneAtATime room(turns);
  std::atomic<int> num_ran{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int turn = 0; turn < 500; ++turn) {
          turns.take([&] { return room.try_begin(); }, give_up);
          ++num_ran;
          room.end();
        }
      });
    }
  }
  EXPECT_EQ(num_ran, 2000);
}

}  // namespace
}  // namespace headwater::adapter
