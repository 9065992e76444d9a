#pragma once

#include "headwater/device/disk/completion.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace headwater::disk {

class StoreFile;

enum class IoKind : unsigned char { kRead, kWrite };

/// Bytes to be read from or written to a file. Offset, size and address are aligned as the file
/// demands; file and bytes outlive the request.
struct IoRequest {
  IoKind kind = IoKind::kRead;
  const StoreFile* file = nullptr;
  std::size_t offset = 0;
  std::span<std::byte> bytes;  // only read from when kind is kWrite

  static IoRequest read(const StoreFile& file, std::size_t offset, std::span<std::byte> target);
  static IoRequest write(const StoreFile& file,
                         std::size_t offset,
                         std::span<const std::byte> source);
};

/// What is left to do of a part of a request.
struct IoPiece {
  IoKind kind = IoKind::kRead;
  int descriptor = -1;
  std::size_t offset = 0;
  std::span<std::byte> bytes;
  std::shared_ptr<Completion> completion;
};

/// Cuts a request into pieces of at most `piece_bytes`, which share one completion. A request of no
/// bytes is one piece of none. REQUIRES: the request is aligned as its file demands.
std::vector<IoPiece> cut(const IoRequest& request, std::size_t piece_bytes);

enum class PieceState : unsigned char { kUnfinished, kEnded };

/// Takes note of one system call's answer: a count of bytes, or an error as a negative number.
/// Tells the completion when the piece has ended.
PieceState settle(IoPiece& piece, std::ptrdiff_t answer);

}  // namespace headwater::disk
