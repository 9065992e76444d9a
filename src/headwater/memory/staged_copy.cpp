#include "headwater/memory/staged_copy.h"

#include "headwater/base/check.h"
#include "headwater/device/disk/disk_error.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <vector>

namespace headwater {

using disk::IoKind;
using disk::IoRequest;

StagedCopy::StagedCopy(const disk::StoreFile& file, disk::IoQueue& queue, Shape shape)
    : file_(file), queue_(queue), shape_(shape), slots_(shape.num_slots) {}

std::uint64_t StagedCopy::write(std::size_t offset, std::span<const std::byte> source) {
  return copy(std::array{IoRequest::write(file_, offset, source)});
}

std::uint64_t StagedCopy::read(std::size_t offset, std::span<std::byte> target) {
  return copy(std::array{IoRequest::read(file_, offset, target)});
}

std::uint64_t StagedCopy::write_parts(std::size_t offset,
                                      std::span<const std::span<std::byte>> source) {
  return copy_parts(IoRequest::write(file_, offset, {}), source);
}

std::uint64_t StagedCopy::read_parts(std::size_t offset,
                                     std::span<const std::span<std::byte>> target) {
  return copy_parts(IoRequest::read(file_, offset, {}), target);
}

std::uint64_t StagedCopy::copy_parts(IoRequest first, std::span<const std::span<std::byte>> parts) {
  std::vector<IoRequest> requests;
  for (const std::span<std::byte> part : parts) {
    HEADWATER_CHECK_EQ(first.offset % file_.block_bytes(), 0U);
    first.bytes = part;
    requests.push_back(first);
    first.offset += part.size();
  }
  return copy(requests);
}

std::uint64_t StagedCopy::copy(std::span<const IoRequest> parts) {
  try {
    return copy_pieces(parts);
  } catch (...) {
    // The caller may free its memory as soon as it knows of the failure.
    drain();
    throw;
  }
}

// Slots are used in turn, so pieces are summed up in the order of their bytes.
std::uint64_t StagedCopy::copy_pieces(std::span<const IoRequest> parts) {
  Checksum sum;
  std::size_t turn = 0;
  for (const IoRequest& part : parts) {
    for (std::size_t begin = 0; begin < part.bytes.size(); ++turn) {
      IoRequest piece = part;
      piece.offset += begin;
      piece.bytes = part.bytes.subspan(begin, next_piece(part.bytes.size() - begin));
      Slot& slot = slots_[turn % slots_.size()];
      finish(slot, part.kind, sum);
      start(slot, piece, sum);
      begin += piece.bytes.size();
    }
  }
  for (std::size_t i = 0; i < slots_.size() && !parts.empty(); ++i) {
    finish(slots_[(turn + i) % slots_.size()], parts.front().kind, sum);
  }
  return sum.value();
}

// Bytes beyond the last whole block are a piece of their own, so that the others need no bounce.
std::size_t StagedCopy::next_piece(std::size_t bytes_left) const {
  const std::size_t in_blocks = bytes_left / file_.block_bytes() * file_.block_bytes();
  return in_blocks == 0 ? bytes_left : std::min(in_blocks, shape_.piece_bytes);
}

void StagedCopy::start(Slot& slot, const IoRequest& piece, Checksum& sum) {
  stage(slot, piece.bytes);
  if (piece.kind == IoKind::kWrite) {
    sum.add(slot.bytes);
    if (slot.staged.data() != slot.bytes.data()) {
      std::memcpy(slot.staged.data(), slot.bytes.data(), slot.bytes.size());
      std::ranges::fill(slot.staged.subspan(slot.bytes.size()), std::byte{0});
    }
  }
  IoRequest request = piece;
  request.bytes = slot.staged;
  slot.ticket = queue_.submit(request);
}

void StagedCopy::finish(Slot& slot, IoKind kind, Checksum& sum) {
  slot.ticket.wait();
  if (kind == IoKind::kRead && !slot.bytes.empty()) {
    if (slot.staged.data() != slot.bytes.data()) {
      std::memcpy(slot.bytes.data(), slot.staged.data(), slot.bytes.size());
    }
    sum.add(slot.bytes);
  }
  slot.ticket = {};
  slot.bytes = {};
}

void StagedCopy::stage(Slot& slot, std::span<std::byte> bytes) {
  const std::size_t block = file_.block_bytes();
  const std::size_t padded = (bytes.size() + block - 1) / block * block;
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  slot.bytes = bytes;
  if (padded == bytes.size() && address % file_.memory_alignment() == 0) {
    slot.staged = bytes;
    return;
  }
  if (slot.bounce.size() < padded) {
    slot.bounce = disk::AlignedBytes(padded, block);
  }
  slot.staged = slot.bounce.first(padded);
}

void StagedCopy::drain() noexcept {
  for (Slot& slot : slots_) {
    try {
      slot.ticket.wait();
    } catch (const std::exception&) {  // the first failure is the one that is told
    }
    slot.ticket = {};
    slot.bytes = {};
  }
}

}  // namespace headwater
