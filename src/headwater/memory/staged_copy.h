#pragma once

#include "headwater/device/disk/aligned_bytes.h"
#include "headwater/device/disk/io_queue.h"
#include "headwater/device/disk/store_file.h"
#include "headwater/memory/checksum.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headwater {

/// Carries bytes between host memory and a store file and sums them up on the way: while the disk
/// works on some pieces, the sum of the others is taken. For one thread.
///
/// Pieces go straight from and to the caller's memory. Only one that the disk would not take, for
/// its address or its size, passes through a bounce buffer; there are num_slots of them, each of
/// piece_bytes at most, made when first needed.
class StagedCopy {
 public:
  struct Shape {
    std::size_t piece_bytes = std::size_t{4} << 20;  // a multiple of the file's blocks
    std::size_t num_slots = 4;                       // pieces in flight
  };

  StagedCopy(const disk::StoreFile& file, disk::IoQueue& queue, Shape shape);

  /// Both return the checksum of the bytes and throw DiskError where I/O fails. Nothing is in
  /// flight when they return or throw. A write fills the last block of the file with zeros.
  std::uint64_t write(std::size_t offset, std::span<const std::byte> source);
  std::uint64_t read(std::size_t offset, std::span<std::byte> target);
  /// The same with several ranges that follow each other. REQUIRES: all but the last are whole
  /// blocks of the file.
  std::uint64_t write_parts(std::size_t offset, std::span<const std::span<std::byte>> source);
  std::uint64_t read_parts(std::size_t offset, std::span<const std::span<std::byte>> target);

 private:
  struct Slot {
    disk::IoTicket ticket;
    std::span<std::byte> bytes;   // the caller's; empty when the slot is idle
    std::span<std::byte> staged;  // what the disk works on: the same or the bounce buffer
    disk::AlignedBytes bounce;
  };

  std::uint64_t copy_parts(disk::IoRequest first, std::span<const std::span<std::byte>> parts);
  std::uint64_t copy(std::span<const disk::IoRequest> parts);
  std::uint64_t copy_pieces(std::span<const disk::IoRequest> parts);
  std::size_t next_piece(std::size_t bytes_left) const;
  void start(Slot& slot, const disk::IoRequest& piece, Checksum& sum);
  void finish(Slot& slot, disk::IoKind kind, Checksum& sum);
  void stage(Slot& slot, std::span<std::byte> bytes);
  void drain() noexcept;

  const disk::StoreFile& file_;
  disk::IoQueue& queue_;
  const Shape shape_;
  std::vector<Slot> slots_;
};

}  // namespace headwater
