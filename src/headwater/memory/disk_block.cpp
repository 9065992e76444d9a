#include "headwater/memory/disk_block.h"

#include "headwater/memory/disk_pool.h"

#include <exception>
#include <string>

namespace headwater {

DiskBlock::DiskBlock(DiskBlock&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      offset_(std::exchange(other.offset_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

DiskBlock& DiskBlock::operator=(DiskBlock&& other) noexcept {
  if (this != &other) {
    release();
    pool_ = std::exchange(other.pool_, nullptr);
    offset_ = std::exchange(other.offset_, 0);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void DiskBlock::release() noexcept {
  if (pool_ != nullptr) {
    pool_->give_back(offset_);
  }
  pool_ = nullptr;
  offset_ = 0;
  bytes_ = 0;
}

std::optional<std::uint64_t> DiskBlock::checksum() const {
  return pool_ == nullptr ? std::nullopt : pool_->checksum_of(offset_);
}

DiskTransfer::DiskTransfer(DiskTransfer&& other) noexcept
    : ticket_(std::exchange(other.ticket_, {})), log_(std::exchange(other.log_, nullptr)) {}

DiskTransfer& DiskTransfer::operator=(DiskTransfer&& other) noexcept {
  if (this != &other) {
    finish();
    ticket_ = std::exchange(other.ticket_, {});
    log_ = std::exchange(other.log_, nullptr);
  }
  return *this;
}

void DiskTransfer::wait() {
  const disk::IoTicket ticket = std::exchange(ticket_, {});
  ticket.wait();
}

void DiskTransfer::finish() noexcept {
  try {
    wait();
  } catch (const std::exception& failure) {
    log_->write(LogLevel::kError, std::string("Disk transfer failed unseen: ") + failure.what());
  }
}

}  // namespace headwater
