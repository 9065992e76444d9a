#include "headwater/memory/host_block.h"

#include "headwater/base/check.h"
#include "headwater/memory/host_pool.h"

#include <utility>

namespace headwater {

HostBlock::HostBlock(HostPool& pool, std::vector<Part> parts, std::size_t bytes)
    : pool_(&pool), parts_(std::move(parts)), bytes_(bytes) {}

HostBlock::HostBlock(HostBlock&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      parts_(std::exchange(other.parts_, {})),
      bytes_(std::exchange(other.bytes_, 0)) {}

HostBlock& HostBlock::operator=(HostBlock&& other) noexcept {
  if (this != &other) {
    release();
    pool_ = std::exchange(other.pool_, nullptr);
    parts_ = std::exchange(other.parts_, {});
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void HostBlock::release() noexcept {
  if (pool_ != nullptr) {
    pool_->give_back(parts_);
  }
  pool_ = nullptr;
  parts_.clear();
  bytes_ = 0;
}

std::byte* HostBlock::data() const {
  HEADWATER_CHECK_LE(parts_.size(), 1U);
  return parts_.empty() ? nullptr : parts_.front().data();
}

}  // namespace headwater
