#include "headwater/offload/retired_blocks.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace headwater {

void RetiredBlocks::add(HostBlock block, std::optional<Event> last_copy) {
  if (!last_copy || !last_copy->done()) {
    blocks_.push_back({std::move(block), std::move(last_copy)});
  }
}

void RetiredBlocks::collect(std::size_t num_looks) {
  const auto end =
      blocks_.begin() + static_cast<std::ptrdiff_t>(std::min(num_looks, blocks_.size()));
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
