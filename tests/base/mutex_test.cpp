#include "headwater/base/mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace headwater {
namespace {

std::atomic<int> num_waits{0};

void count_and_lock(std::mutex& mutex) {
  ++num_waits;
  num_waits.notify_all();
  mutex.lock();
}

TEST(MutexTest, WaitsForATakenOneTheWayTheHostProgramAsks) {
  Mutex mutex;
  Mutex::set_wait(&count_and_lock);
  mutex.lock();
  std::thread other([&mutex] { const MutexLock lock(mutex); });
  num_waits.wait(0);
  mutex.unlock();
  other.join();
  Mutex::set_wait([](std::mutex& taken) { taken.lock(); });
  EXPECT_EQ(num_waits.load(), 1);
}

TEST(MutexTest, DoesNotWaitForAFreeOne) {
  Mutex mutex;
  Mutex::set_wait(&count_and_lock);
  const int before = num_waits.load();
  { const MutexLock lock(mutex); }
  Mutex::set_wait([](std::mutex& taken) { taken.lock(); });
  EXPECT_EQ(num_waits.load(), before);
}

}  // namespace
}  // namespace headwater
