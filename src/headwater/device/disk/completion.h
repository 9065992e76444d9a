#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/disk/disk_error.h"

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace headwater::disk {

/// The end of a request, shared by whoever works on it and whoever waits for it. Thread-safe.
class Completion {
 public:
  /// Done after as many calls of finish_piece().
  explicit Completion(std::size_t num_pieces) : pieces_left_(num_pieces) {}

  /// The first failure is kept.
  void finish_piece(std::optional<DiskFailure> failure) HEADWATER_EXCLUDES(mutex_);

  bool done() const HEADWATER_EXCLUDES(mutex_);
  /// Blocks until done; throws the failure, if any.
  void wait() const HEADWATER_EXCLUDES(mutex_);

 private:
  // guarded by mutex_
  mutable Mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::size_t pieces_left_ HEADWATER_GUARDED_BY(mutex_);
  std::optional<DiskFailure> failure_ HEADWATER_GUARDED_BY(mutex_);
};

/// Copyable handle to the end of a request; empty means "long past". The request's bytes must stay
/// where they are until it is done.
class IoTicket {
 public:
  IoTicket() = default;
  explicit IoTicket(std::shared_ptr<const Completion> completion)
      : completion_(std::move(completion)) {}

  bool done() const { return !completion_ || completion_->done(); }
  /// Throws DiskFull, DiskTruncated or DiskError when the request failed, every time.
  void wait() const;

 private:
  std::shared_ptr<const Completion> completion_;
};

}  // namespace headwater::disk
