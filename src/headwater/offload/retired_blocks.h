#pragma once

#include "headwater/device/device.h"
#include "headwater/memory/host_pool.h"

#include <cstddef>
#include <deque>
#include <optional>

namespace headwater {

/// Host blocks that nobody needs any more but a copy may still use. Thread-compatible.
class RetiredBlocks final {
 public:
  explicit RetiredBlocks(Device& device) : device_(device) {}

  /// Takes a block until the event; for good, that is until release_all(), when there is none.
  void add(HostBlock block, std::optional<Event> last_copy);
  /// Gives back the blocks whose copies have ended, of the oldest few.
  void collect() { collect(kMostLooks); }
  /// The same of all.
  void collect_all() { collect(blocks_.size()); }
  /// Waits for the copy of the oldest block and gives that back. False when there is none to wait
  /// for.
  bool wait_for_oldest();
  /// Gives back all blocks. REQUIRES: no copy is under way.
  void release_all() { blocks_.clear(); }

  bool empty() const { return blocks_.empty(); }

 private:
  struct Retired {
    HostBlock block;
    std::optional<Event> last_copy;
  };

  // Copies of one direction end in order: looking at the first few finds nearly all, also where
  // one of the other direction takes long.
  static constexpr std::size_t kMostLooks = 8;

  void collect(std::size_t num_looks);

  Device& device_;
  std::deque<Retired> blocks_;
};

}  // namespace headwater
