#include "headwater/offload/retired_blocks.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace headwater {

void RetiredBlocks::add(HostBlock block, std::optional<Event> last_copy) {
  if (!last_copy || !last_copy->done()) {
    blocks_.push_back({std::move(block), std::move(last_copy)});
  }
}

void RetiredBlocks::collect() {
  // Copies of one direction end in order: looking at the first few finds nearly all, also where
  // one of the other direction takes long.
  constexpr std::ptrdiff_t kMostLooks = 8;
  const std::ptrdiff_t looks = std::min(kMostLooks, std::ssize(blocks_));
  const auto end = blocks_.begin() + looks;
  const auto done = std::remove_if(blocks_.begin(), end, [](const Retired& retired) {
    return retired.last_copy && retired.last_copy->done();
  });
  blocks_.erase(done, end);
}

bool RetiredBlocks::wait_for_oldest() {
  const auto oldest = std::find_if(blocks_.begin(), blocks_.end(), [](const Retired& retired) {
    return retired.last_copy.has_value();
  });
  if (oldest == blocks_.end()) {
    return false;
  }
  device_.synchronize(*oldest->last_copy);
  blocks_.erase(oldest);
  return true;
}

}  // namespace headwater
