#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/disk/io_queue.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <vector>

namespace headwater::disk {

/// Threads that read and write, each a piece at a time. Works everywhere.
class ThreadQueue final : public IoQueue {
 public:
  explicit ThreadQueue(const IoOptions& options);
  ~ThreadQueue() override = default;
  ThreadQueue(const ThreadQueue&) = delete;
  ThreadQueue& operator=(const ThreadQueue&) = delete;
  ThreadQueue(ThreadQueue&&) = delete;
  ThreadQueue& operator=(ThreadQueue&&) = delete;

  [[nodiscard]] IoTicket submit(const IoRequest& request) override HEADWATER_EXCLUDES(mutex_);
  std::string_view name() const override { return "threads"; }
  void check_invariants() const override HEADWATER_EXCLUDES(mutex_);

 private:
  void enqueue(IoPiece piece) HEADWATER_EXCLUDES(mutex_);
  void run(const std::stop_token& stop) HEADWATER_EXCLUDES(mutex_);
  std::optional<IoPiece> next(const std::stop_token& stop) HEADWATER_EXCLUDES(mutex_);

  // constant after construction
  const std::size_t num_pieces_;
  const std::size_t piece_bytes_;
  // guarded by mutex_
  mutable Mutex mutex_;
  std::condition_variable_any more_;
  std::condition_variable_any room_;
  std::deque<IoPiece> pieces_ HEADWATER_GUARDED_BY(mutex_);
  // last: they are stopped and joined while the rest still lives
  std::vector<std::jthread> threads_;
};

}  // namespace headwater::disk
