#pragma once

#include "headwater/base/log.h"
#include "headwater/device/disk/completion.h"
#include "headwater/device/disk/io_request.h"

#include <cstddef>
#include <memory>
#include <string_view>

namespace headwater::disk {

/// Carries out requests on store files, several at a time and in any order. Thread-safe.
///
/// An implementation passes tests/conformance/io_queue_suite.h. Its destructor ends what was
/// submitted. A request that overlaps another one in flight has no defined result.
class IoQueue {
 public:
  IoQueue() = default;
  virtual ~IoQueue() = default;
  IoQueue(const IoQueue&) = delete;
  IoQueue& operator=(const IoQueue&) = delete;

  /// Waits while the queue is full, until what is in flight has made room.
  [[nodiscard]] virtual IoTicket submit(const IoRequest& request) = 0;

  virtual std::string_view name() const = 0;
  virtual void check_invariants() const = 0;
};

/// Which implementation carries requests out.
enum class IoEngine : unsigned char { kUring, kThreads };

struct IoOptions {
  IoEngine engine = IoEngine::kUring;              // threads where the kernel or the build has none
  std::size_t num_threads = 4;                     // of IoEngine::kThreads
  std::size_t num_pieces = 32;                     // in flight or waiting, at most
  std::size_t piece_bytes = std::size_t{8} << 20;  // larger requests are cut; a multiple of blocks
};

/// The one place where an implementation is chosen.
std::unique_ptr<IoQueue> make_io_queue(const IoOptions& options, const Log& log);

}  // namespace headwater::disk
