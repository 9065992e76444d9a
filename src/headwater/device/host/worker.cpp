#include "headwater/device/host/worker.h"

#include <utility>

namespace headwater::host {

Worker::Worker() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Worker::enqueue(Job job) {
  {
    const MutexLock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void Worker::run(const std::stop_token& stop) {
  while (const Job job = next(stop)) {
    job();
  }
}

// Empty once a stop is asked for and nothing is queued.
Worker::Job Worker::next(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  changed_.wait(mutex_, stop, [this]() HEADWATER_REQUIRES(mutex_) { return !jobs_.empty(); });
  if (jobs_.empty()) {
    return {};
  }
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

}  // namespace headwater::host
