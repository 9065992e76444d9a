#include "headwater/device/disk/io_request.h"

#include "headwater/base/bytes.h"
#include "headwater/base/check.h"
#include "headwater/device/disk/disk_error.h"
#include "headwater/device/disk/store_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace headwater::disk {
namespace {

std::string place_of(const IoPiece& piece) {
  return format_bytes(piece.bytes.size()) + " at offset " + std::to_string(piece.offset) + " bytes";
}

DiskFailure failure_of(const IoPiece& piece, int error) {
  const std::string values = place_of(piece) + ", " + std::generic_category().message(error);
  if (error == ENOSPC || error == EDQUOT) {
    return {.kind = DiskFailure::Kind::kFull,
            .text = "Disk is full. Free space on it or lower the disk budget: writing " + values};
  }
  const std::string verb = piece.kind == IoKind::kRead ? "read" : "write";
  return {.text = "Disk " + verb + " failed. Check the disk behind the disk folder: " + values};
}

DiskFailure truncation_of(const IoPiece& piece) {
  return {.kind = DiskFailure::Kind::kTruncated,
          .text =
              "Store file ends too early. Something has cut it off; keep other programs away from "
              "it: reading " +
              place_of(piece)};
}

void check_aligned(const IoRequest& request) {
  const std::size_t block = request.file->block_bytes();
  const auto address = reinterpret_cast<std::uintptr_t>(request.bytes.data());
  HEADWATER_CHECK_EQ(request.offset % block, 0U);
  HEADWATER_CHECK_EQ(request.bytes.size() % block, 0U);
  HEADWATER_CHECK_EQ(address % request.file->memory_alignment(), 0U);
}

}  // namespace

IoRequest IoRequest::read(const StoreFile& file, std::size_t offset, std::span<std::byte> target) {
  return {.kind = IoKind::kRead, .file = &file, .offset = offset, .bytes = target};
}

IoRequest IoRequest::write(const StoreFile& file,
                           std::size_t offset,
                           std::span<const std::byte> source) {
  // One kind of span for both directions; nothing writes to it in this one.
  auto* data = const_cast<std::byte*>(source.data());
  return {.kind = IoKind::kWrite, .file = &file, .offset = offset, .bytes = {data, source.size()}};
}

std::vector<IoPiece> cut(const IoRequest& request, std::size_t piece_bytes) {
  check_aligned(request);
  const std::size_t size = request.bytes.size();
  const std::size_t num_pieces = std::max<std::size_t>((size + piece_bytes - 1) / piece_bytes, 1);
  const auto completion = std::make_shared<Completion>(num_pieces);
  std::vector<IoPiece> pieces;
  pieces.reserve(num_pieces);
  for (std::size_t i = 0; i < num_pieces; ++i) {
    const std::size_t begin = i * piece_bytes;
    pieces.push_back({.kind = request.kind,
                      .descriptor = request.file->descriptor(),
                      .offset = request.offset + begin,
                      .bytes = request.bytes.subspan(begin, std::min(piece_bytes, size - begin)),
                      .completion = completion});
  }
  return pieces;
}

PieceState settle(IoPiece& piece, std::ptrdiff_t answer) {
  // A ring cancels what it has not begun when the thread that submitted it ends.
  if (answer == -EINTR || answer == -EAGAIN || answer == -ECANCELED) {
    return PieceState::kUnfinished;
  }
  std::optional<DiskFailure> failure;
  if (answer < 0) {
    failure = failure_of(piece, static_cast<int>(-answer));
  } else if (answer == 0 && !piece.bytes.empty()) {
    failure = piece.kind == IoKind::kRead ? truncation_of(piece) : failure_of(piece, ENOSPC);
  } else {
    const auto carried = static_cast<std::size_t>(answer);
    piece.offset += carried;
    piece.bytes = piece.bytes.subspan(carried);
  }
  if (!failure && !piece.bytes.empty()) {
    return PieceState::kUnfinished;
  }
  piece.completion->finish_piece(std::move(failure));
  return PieceState::kEnded;
}

}  // namespace headwater::disk
