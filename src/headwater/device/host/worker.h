#pragma once

#include "headwater/base/mutex.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <stop_token>
#include <thread>

namespace headwater::host {

/// A thread that runs jobs in the order they come. Thread-safe. Its destructor runs what is still
/// queued before it returns, so no byte of a stream's work is lost. Jobs must not throw.
class Worker {
 public:
  using Job = std::function<void()>;

  Worker();
  ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  Worker(Worker&&) = delete;
  Worker& operator=(Worker&&) = delete;

  void enqueue(Job job) HEADWATER_EXCLUDES(mutex_);

 private:
  void run(const std::stop_token& stop) HEADWATER_EXCLUDES(mutex_);
  Job next(const std::stop_token& stop) HEADWATER_EXCLUDES(mutex_);

  // guarded by mutex_
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Job> jobs_ HEADWATER_GUARDED_BY(mutex_);
  // last: it is stopped and joined while the rest still lives
  std::jthread thread_;
};

}  // namespace headwater::host
