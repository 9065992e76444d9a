#include "headwater/offload/retired_blocks.h"

#include <algorithm>
#include <utility>

namespace headwater {

void RetiredBlocks::add(HostBlock block, std::optional<Event> last_copy) {
  if (!last_copy || !last_copy->done()) {
    blocks_.push_back({std::move(block), std::move(last_copy)});
  }
}

void RetiredBlocks::collect() {
  // Copies of one direction end in order: looking at the first few finds nearly all.
  constexpr std::size_t kMostLooks = 8;
  for (std::size_t looks = 0; looks < kMostLooks && !blocks_.empty(); ++looks) {
    if (!blocks_.front().last_copy || !blocks_.front().last_copy->done()) {
      return;
    }
    blocks_.pop_front();
  }
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
