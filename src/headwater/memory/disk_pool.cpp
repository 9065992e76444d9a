#include "headwater/memory/disk_pool.h"

#include "headwater/base/bytes.h"
#include "headwater/base/check.h"
#include "headwater/device/disk/completion.h"
#include "headwater/device/disk/disk_error.h"
#include "headwater/memory/staged_copy.h"

#include <functional>
#include <span>
#include <string>
#include <utility>

namespace headwater {
namespace {

[[noreturn]] void throw_corrupt(std::size_t offset, std::size_t bytes) {
  throw DiskCorrupt(
      "Bytes read from disk are not those written. Check the disk behind the disk folder: " +
      format_bytes(bytes) + " at offset " + std::to_string(offset) + " bytes");
}

[[noreturn]] void throw_not_owned(std::size_t bytes) {
  throw DiskError(
      "Bytes on disk belong to the process that wrote them, and this one was forked from it. Hold "
      "the tensor before the fork, or start processes by spawn: " +
      format_bytes(bytes));
}

}  // namespace

/// What the pool knows of a block.
struct DiskPool::Record {
  std::size_t bytes = 0;
  std::size_t written_bytes = 0;
  std::optional<std::uint64_t> checksum;  // of the written bytes
  std::size_t num_transfers = 0;
  bool released = false;  // given back as soon as its transfers have ended
};

/// A thread that carries out transfers one after the other.
class DiskPool::Lane {
 public:
  using Job = std::function<void(StagedCopy&)>;

  Lane(const disk::StoreFile& file, disk::IoQueue& queue) : copy_(file, queue, {}) {}

  /// The ticket is done when the job has run, and carries what it throws.
  disk::IoTicket enqueue(Job job) {
    auto completion = std::make_shared<disk::Completion>(1);
    worker_.enqueue([this, completion, job = std::move(job)] {
      std::optional<DiskFailure> failure;
      try {
        job(copy_);
      } catch (...) {
        failure = current_failure();
      }
      completion->finish_piece(std::move(failure));
    });
    return disk::IoTicket(std::move(completion));
  }

 private:
  StagedCopy copy_;
  host::Worker worker_;  // last: runs what is queued before the rest goes
};

/// Ends a transfer when it goes out of scope; the block keeps the checksum it has by then.
class DiskPool::Ending {
 public:
  Ending(DiskPool& pool, std::size_t offset, std::optional<std::uint64_t> sum)
      : checksum(sum), pool_(pool), offset_(offset) {}
  ~Ending() { pool_.end_transfer(offset_, checksum); }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

  std::optional<std::uint64_t> checksum;

 private:
  DiskPool& pool_;
  std::size_t offset_;
};

DiskPool::DiskPool(disk::StoreFile& file,
                   disk::IoQueue& queue,
                   Budget& budget,
                   DiskPoolOptions options)
    : file_(file), space_(file, budget, options.extent_bytes) {
  for (std::size_t i = 0; i < options.num_lanes; ++i) {
    readers_.push_back(std::make_unique<Lane>(file, queue));
    writers_.push_back(std::make_unique<Lane>(file, queue));
  }
}

DiskPool::~DiskPool() = default;

DiskBlock DiskPool::try_allocate(std::size_t bytes) {
  const std::optional<std::size_t> offset = owned() ? space_.try_take(bytes) : std::nullopt;
  if (!offset) {
    return {};
  }
  const MutexLock lock(mutex_);
  records_.emplace(*offset, Record{.bytes = bytes});
  return {this, *offset, bytes};
}

DiskTransfer DiskPool::write(DiskBlock& block, const void* source, std::size_t bytes) {
  // Nothing is written to it: a part is a part of either direction.
  auto* const begin = const_cast<std::byte*>(static_cast<const std::byte*>(source));
  return write_parts(block, {HostBlock::Part(begin, bytes)}, bytes);
}

DiskTransfer DiskPool::write(DiskBlock& block, const HostBlock& source) {
  return write_parts(block, {source.parts().begin(), source.parts().end()}, source.bytes());
}

DiskTransfer DiskPool::read(const DiskBlock& block, void* target, std::size_t bytes) {
  return read_parts(block, {HostBlock::Part(static_cast<std::byte*>(target), bytes)}, bytes);
}

DiskTransfer DiskPool::read(const DiskBlock& block, const HostBlock& target) {
  return read_parts(block, {target.parts().begin(), target.parts().end()}, target.bytes());
}

DiskTransfer DiskPool::write_parts(DiskBlock& block, Parts source, std::size_t bytes) {
  HEADWATER_CHECK(block.pool_ == this);
  HEADWATER_CHECK_LE(bytes, block.bytes());
  const std::size_t offset = block.offset();
  begin_write(offset, bytes);
  Lane& lane = *writers_[next_writer_++ % writers_.size()];
  const disk::IoTicket ticket =
      lane.enqueue([this, offset, source = std::move(source)](StagedCopy& copy) {
        Ending ending(*this, offset, std::nullopt);
        ending.checksum = copy.write_parts(offset, source);
      });
  return {ticket, log()};
}

DiskTransfer DiskPool::read_parts(const DiskBlock& block, Parts target, std::size_t bytes) {
  HEADWATER_CHECK(block.pool_ == this);
  if (!owned()) {
    throw_not_owned(bytes);
  }
  const std::size_t offset = block.offset();
  const std::uint64_t written = begin_read(offset, bytes);
  Lane& lane = *readers_[next_reader_++ % readers_.size()];
  const disk::IoTicket ticket =
      lane.enqueue([this, offset, target = std::move(target), written, bytes](StagedCopy& copy) {
        const Ending ending(*this, offset, written);
        if (copy.read_parts(offset, target) != written) {
          throw_corrupt(offset, bytes);
        }
      });
  return {ticket, log()};
}

void DiskPool::trim() {
  if (owned()) {  // else the thread that returns space is another process's
    space_.trim();
  }
}

void DiskPool::give_back(std::size_t offset) noexcept {
  if (!owned()) {
    return;
  }
  std::optional<std::size_t> unused_bytes;
  {
    const MutexLock lock(mutex_);
    records_.at(offset).released = true;
    unused_bytes = drop_if_unused(offset);
  }
  if (unused_bytes) {
    give_back_space(offset, *unused_bytes);
  }
}

std::optional<std::uint64_t> DiskPool::checksum_of(std::size_t offset) const {
  const MutexLock lock(mutex_);
  return records_.at(offset).checksum;
}

void DiskPool::begin_write(std::size_t offset, std::size_t bytes) {
  const MutexLock lock(mutex_);
  Record& record = records_.at(offset);
  HEADWATER_CHECK_EQ(record.num_transfers, 0U);
  ++record.num_transfers;
  record.checksum.reset();
  record.written_bytes = bytes;
}

std::uint64_t DiskPool::begin_read(std::size_t offset, std::size_t bytes) {
  const MutexLock lock(mutex_);
  Record& record = records_.at(offset);
  HEADWATER_CHECK(record.checksum.has_value());
  HEADWATER_CHECK_EQ(bytes, record.written_bytes);
  ++record.num_transfers;
  return *record.checksum;
}

void DiskPool::end_transfer(std::size_t offset, std::optional<std::uint64_t> checksum) noexcept {
  std::optional<std::size_t> unused_bytes;
  {
    const MutexLock lock(mutex_);
    Record& record = records_.at(offset);
    record.checksum = checksum;
    --record.num_transfers;
    unused_bytes = drop_if_unused(offset);
  }
  if (unused_bytes) {
    give_back_space(offset, *unused_bytes);
  }
}

std::optional<std::size_t> DiskPool::drop_if_unused(std::size_t offset) {
  const auto record = records_.find(offset);
  if (!record->second.released || record->second.num_transfers > 0) {
    return std::nullopt;
  }
  const std::size_t bytes = record->second.bytes;
  records_.erase(record);
  return bytes;
}

void DiskPool::give_back_space(std::size_t offset, std::size_t bytes) {
  space_.give_back(offset, bytes);
  if (space_.has_surplus()) {
    sweeper_.enqueue([this] { space_.shed(); });
  }
}

void DiskPool::check_invariants() const {
  space_.check_invariants();
  const MutexLock lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [offset, record] : records_) {
    HEADWATER_CHECK(!record.released || record.num_transfers > 0);
    HEADWATER_CHECK_LE(record.written_bytes, record.bytes);
    bytes += record.bytes;
  }
  // A range on its way in or out is taken while it has no record.
  HEADWATER_CHECK_LE(bytes, space_.taken_bytes());
}

}  // namespace headwater
