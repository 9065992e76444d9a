#include "headwater/device/disk/thread_queue.h"

#include "headwater/base/check.h"

#include <cerrno>
#include <unistd.h>
#include <utility>

namespace headwater::disk {
namespace {

std::ptrdiff_t call(const IoPiece& piece) {
  const auto offset = static_cast<off_t>(piece.offset);
  const ssize_t answer =
      piece.kind == IoKind::kRead
          ? ::pread(piece.descriptor, piece.bytes.data(), piece.bytes.size(), offset)
          : ::pwrite(piece.descriptor, piece.bytes.data(), piece.bytes.size(), offset);
  return answer < 0 ? -errno : answer;
}

}  // namespace

ThreadQueue::ThreadQueue(const IoOptions& options)
    : num_pieces_(options.num_pieces), piece_bytes_(options.piece_bytes) {
  for (std::size_t i = 0; i < options.num_threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { run(stop); });
  }
}

IoTicket ThreadQueue::submit(const IoRequest& request) {
  std::vector<IoPiece> pieces = cut(request, piece_bytes_);
  IoTicket ticket(pieces.front().completion);
  for (IoPiece& piece : pieces) {
    enqueue(std::move(piece));
  }
  return ticket;
}

void ThreadQueue::enqueue(IoPiece piece) {
  {
    const MutexLock lock(mutex_);
    while (pieces_.size() >= num_pieces_) {
      room_.wait(mutex_);
    }
    pieces_.push_back(std::move(piece));
  }
  more_.notify_one();
}

void ThreadQueue::run(const std::stop_token& stop) {
  while (std::optional<IoPiece> piece = next(stop)) {
    while (settle(*piece, call(*piece)) == PieceState::kUnfinished) {
    }
  }
}

// Empty once a stop is asked for and nothing is queued.
std::optional<IoPiece> ThreadQueue::next(const std::stop_token& stop) {
  std::optional<IoPiece> piece;
  {
    const MutexLock lock(mutex_);
    more_.wait(mutex_, stop, [this]() HEADWATER_REQUIRES(mutex_) { return !pieces_.empty(); });
    if (pieces_.empty()) {
      return std::nullopt;
    }
    piece = std::move(pieces_.front());
    pieces_.pop_front();
  }
  room_.notify_one();
  return piece;
}

void ThreadQueue::check_invariants() const {
  const MutexLock lock(mutex_);
  HEADWATER_CHECK_LE(pieces_.size(), num_pieces_);
}

}  // namespace headwater::disk
