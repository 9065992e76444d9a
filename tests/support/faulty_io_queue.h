#pragma once

#include "headwater/base/mutex.h"
#include "headwater/device/disk/aligned_bytes.h"
#include "headwater/device/disk/io_queue.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace headwater::support {

/// What goes wrong with a request.
enum class IoFault : unsigned char {
  kError,      // an I/O error; no byte moves
  kNoSpace,    // the disk is full; no byte moves
  kTruncated,  // the file ends too early; no byte moves
  kCorrupt,    // all goes well, but one bit on the disk is another
};

/// A queue in which a chosen request goes wrong. Thread-safe when the wrapped queue is; outlives
/// its requests.
class FaultyIoQueue final : public disk::IoQueue {
 public:
  explicit FaultyIoQueue(disk::IoQueue& inner) : inner_(inner) {}

  /// Makes the nth request of the kind from now go wrong, and only that one; 1 is the next.
  void fail(disk::IoKind kind, std::size_t nth, IoFault fault) HEADWATER_EXCLUDES(mutex_);
  /// Makes every request of the kind go wrong from now on.
  void fail_all(disk::IoKind kind, IoFault fault) HEADWATER_EXCLUDES(mutex_);
  /// Nothing goes wrong any more.
  void repair() HEADWATER_EXCLUDES(mutex_);

  [[nodiscard]] disk::IoTicket submit(const disk::IoRequest& request) override
      HEADWATER_EXCLUDES(mutex_);
  std::string_view name() const override { return inner_.name(); }
  void check_invariants() const override { inner_.check_invariants(); }

 private:
  bool goes_wrong(const disk::IoRequest& request, IoFault& fault) HEADWATER_EXCLUDES(mutex_);
  disk::IoTicket corrupt(const disk::IoRequest& request) HEADWATER_EXCLUDES(mutex_);

  // self-synchronised
  disk::IoQueue& inner_;
  // guarded by mutex_
  Mutex mutex_;
  disk::IoKind kind_ HEADWATER_GUARDED_BY(mutex_) = disk::IoKind::kRead;
  std::size_t requests_left_ HEADWATER_GUARDED_BY(mutex_) = 0;  // zero: none fails
  bool all_fail_ HEADWATER_GUARDED_BY(mutex_) = false;
  IoFault fault_ HEADWATER_GUARDED_BY(mutex_) = IoFault::kError;
};

}  // namespace headwater::support
