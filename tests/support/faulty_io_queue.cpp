#include "support/faulty_io_queue.h"

#include "headwater/device/disk/store_file.h"

#include <algorithm>
#include <cerrno>

namespace headwater::support {
namespace {

// The answer of the system call that stands for the fault.
std::ptrdiff_t answer_of(IoFault fault) {
  switch (fault) {
    case IoFault::kNoSpace:
      return -ENOSPC;
    case IoFault::kTruncated:
      return 0;
    default:
      return -EIO;
  }
}

disk::IoTicket failed(const disk::IoRequest& request, IoFault fault) {
  disk::IoPiece piece = disk::cut(request, std::max<std::size_t>(request.bytes.size(), 1)).front();
  disk::settle(piece, answer_of(fault));
  return disk::IoTicket(piece.completion);
}

}  // namespace

void FaultyIoQueue::fail(disk::IoKind kind, std::size_t nth, IoFault fault) {
  const MutexLock lock(mutex_);
  kind_ = kind;
  requests_left_ = nth;
  fault_ = fault;
}

void FaultyIoQueue::fail_all(disk::IoKind kind, IoFault fault) {
  const MutexLock lock(mutex_);
  kind_ = kind;
  all_fail_ = true;
  fault_ = fault;
}

void FaultyIoQueue::repair() {
  const MutexLock lock(mutex_);
  requests_left_ = 0;
  all_fail_ = false;
}

disk::IoTicket FaultyIoQueue::submit(const disk::IoRequest& request) {
  IoFault fault{};
  if (!goes_wrong(request, fault)) {
    return inner_.submit(request);
  }
  return fault == IoFault::kCorrupt ? corrupt(request) : failed(request, fault);
}

bool FaultyIoQueue::goes_wrong(const disk::IoRequest& request, IoFault& fault) {
  const MutexLock lock(mutex_);
  fault = fault_;
  if (request.kind != kind_) {
    return false;
  }
  return all_fail_ || (requests_left_ > 0 && --requests_left_ == 0);
}

// The disk changes, and not the caller's bytes: written ones are exchanged for a copy, read ones
// are written back with the fault first.
disk::IoTicket FaultyIoQueue::corrupt(const disk::IoRequest& request) {
  const disk::StoreFile& file = *request.file;
  const disk::AlignedBytes copy(request.bytes.size(), file.block_bytes());
  const std::span<std::byte> bytes = copy.first(copy.size());
  if (request.kind == disk::IoKind::kRead) {
    inner_.submit(disk::IoRequest::read(file, request.offset, bytes)).wait();
  } else {
    std::ranges::copy(request.bytes, bytes.begin());
  }
  bytes.front() ^= std::byte{1};
  const disk::IoTicket written = inner_.submit(disk::IoRequest::write(file, request.offset, bytes));
  written.wait();
  return request.kind == disk::IoKind::kRead ? inner_.submit(request) : written;
}

}  // namespace headwater::support
