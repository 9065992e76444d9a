#include "headwater/device/disk/uring_queue.h"

#include "headwater/base/check.h"
#include "headwater/base/mutex.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <liburing.h>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace headwater::disk {
namespace {

/// The rings shared with the kernel. One thread at a time on each side.
class Ring {
 public:
  explicit Ring(unsigned num_entries) : status_(::io_uring_queue_init(num_entries, &ring_, 0)) {}
  ~Ring() {
    if (status_ == 0) {
      ::io_uring_queue_exit(&ring_);
    }
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  bool usable();

  // The submitting side.
  void submit(const IoPiece& piece, std::uint64_t tag);
  void submit_nothing(std::uint64_t tag);

  struct Answer {
    std::uint64_t tag = 0;
    std::ptrdiff_t value = 0;
  };
  // The reaping side.
  Answer wait();

 private:
  ::io_uring_sqe& entry();
  void flush();

  ::io_uring ring_{};
  int status_;
};

bool Ring::usable() {
  if (status_ != 0) {
    return false;
  }
  ::io_uring_probe* probe = ::io_uring_get_probe_ring(&ring_);
  const bool has_calls = probe != nullptr &&
                         ::io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                         ::io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
  ::io_uring_free_probe(probe);
  return has_calls;
}

void Ring::submit(const IoPiece& piece, std::uint64_t tag) {
  ::io_uring_sqe& sqe = entry();
  const auto bytes = static_cast<unsigned>(piece.bytes.size());
  if (piece.kind == IoKind::kRead) {
    ::io_uring_prep_read(&sqe, piece.descriptor, piece.bytes.data(), bytes, piece.offset);
  } else {
    ::io_uring_prep_write(&sqe, piece.descriptor, piece.bytes.data(), bytes, piece.offset);
  }
  ::io_uring_sqe_set_data64(&sqe, tag);
  flush();
}

void Ring::submit_nothing(std::uint64_t tag) {
  ::io_uring_sqe& sqe = entry();
  ::io_uring_prep_nop(&sqe);
  ::io_uring_sqe_set_data64(&sqe, tag);
  flush();
}

::io_uring_sqe& Ring::entry() {
  ::io_uring_sqe* sqe = ::io_uring_get_sqe(&ring_);
  HEADWATER_CHECK(sqe != nullptr);
  return *sqe;
}

void Ring::flush() {
  int answer = 0;
  do {
    answer = ::io_uring_submit(&ring_);
  } while (answer == -EINTR || answer == -EAGAIN || answer == -EBUSY);
  HEADWATER_CHECK_EQ(answer, 1);
}

Ring::Answer Ring::wait() {
  ::io_uring_cqe* cqe = nullptr;
  int status = 0;
  do {
    status = ::io_uring_wait_cqe(&ring_, &cqe);
  } while (status == -EINTR || status == -EAGAIN);
  HEADWATER_CHECK_EQ(status, 0);
  const Answer answer{.tag = ::io_uring_cqe_get_data64(cqe), .value = cqe->res};
  ::io_uring_cqe_seen(&ring_, cqe);
  return answer;
}

class UringQueue final : public IoQueue {
 public:
  explicit UringQueue(const IoOptions& options);
  ~UringQueue() override;
  UringQueue(const UringQueue&) = delete;
  UringQueue& operator=(const UringQueue&) = delete;
  UringQueue(UringQueue&&) = delete;
  UringQueue& operator=(UringQueue&&) = delete;

  bool usable() const { return usable_; }
  [[nodiscard]] IoTicket submit(const IoRequest& request) override HEADWATER_EXCLUDES(mutex_);
  std::string_view name() const override { return "io_uring"; }
  void check_invariants() const override HEADWATER_EXCLUDES(mutex_);

 private:
  static constexpr std::uint64_t kStop = UINT64_MAX;

  void enqueue(IoPiece piece) HEADWATER_EXCLUDES(mutex_);
  void reap() HEADWATER_EXCLUDES(mutex_);
  void take_note(Ring::Answer answer) HEADWATER_EXCLUDES(mutex_);
  IoPiece take(std::size_t slot) HEADWATER_EXCLUDES(mutex_);
  void put(IoPiece piece, std::size_t slot) HEADWATER_REQUIRES(mutex_);

  // constant after construction
  const std::size_t piece_bytes_;
  // its submitting side is guarded by mutex_, its reaping side belongs to the thread
  Ring ring_;
  const bool usable_;
  // guarded by mutex_
  mutable Mutex mutex_;
  std::condition_variable_any room_;
  std::vector<std::optional<IoPiece>> slots_ HEADWATER_GUARDED_BY(mutex_);  // index: the tag
  std::vector<std::size_t> free_slots_ HEADWATER_GUARDED_BY(mutex_);
  // last: it ends, told by the destructor, while the rest still lives
  std::jthread reaper_;
};

UringQueue::UringQueue(const IoOptions& options)
    : piece_bytes_(options.piece_bytes),
      // One entry more than pieces, for the message that ends the thread.
      ring_(static_cast<unsigned>(options.num_pieces + 1)),
      usable_(ring_.usable()),
      slots_(options.num_pieces) {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    free_slots_.push_back(slot);
  }
  if (usable_) {
    reaper_ = std::jthread([this] { reap(); });
  }
}

UringQueue::~UringQueue() {
  if (!usable_) {
    return;
  }
  const MutexLock lock(mutex_);
  while (free_slots_.size() < slots_.size()) {
    room_.wait(mutex_);
  }
  ring_.submit_nothing(kStop);
}

IoTicket UringQueue::submit(const IoRequest& request) {
  std::vector<IoPiece> pieces = cut(request, piece_bytes_);
  IoTicket ticket(pieces.front().completion);
  for (IoPiece& piece : pieces) {
    enqueue(std::move(piece));
  }
  return ticket;
}

void UringQueue::enqueue(IoPiece piece) {
  const MutexLock lock(mutex_);
  while (free_slots_.empty()) {
    room_.wait(mutex_);
  }
  const std::size_t slot = free_slots_.back();
  free_slots_.pop_back();
  put(std::move(piece), slot);
}

void UringQueue::reap() {
  for (Ring::Answer answer = ring_.wait(); answer.tag != kStop; answer = ring_.wait()) {
    take_note(answer);
  }
}

void UringQueue::take_note(Ring::Answer answer) {
  IoPiece piece = take(answer.tag);
  if (settle(piece, answer.value) == PieceState::kUnfinished) {
    const MutexLock lock(mutex_);
    put(std::move(piece), answer.tag);
    return;
  }
  {
    const MutexLock lock(mutex_);
    slots_[answer.tag].reset();
    free_slots_.push_back(answer.tag);
  }
  // Everyone: the destructor waits for the last piece, submitters for any.
  room_.notify_all();
}

IoPiece UringQueue::take(std::size_t slot) {
  const MutexLock lock(mutex_);
  return std::move(slots_[slot].value());
}

void UringQueue::put(IoPiece piece, std::size_t slot) {
  slots_[slot] = std::move(piece);
  ring_.submit(*slots_[slot], slot);
}

void UringQueue::check_invariants() const {
  const MutexLock lock(mutex_);
  const auto in_use = std::count_if(
      slots_.begin(), slots_.end(), [](const auto& slot) { return slot.has_value(); });
  HEADWATER_CHECK_EQ(static_cast<std::size_t>(in_use) + free_slots_.size(), slots_.size());
  for (const std::size_t slot : free_slots_) {
    HEADWATER_CHECK(!slots_[slot].has_value());
  }
}

}  // namespace

std::unique_ptr<IoQueue> try_make_uring_queue(const IoOptions& options) {
  auto queue = std::make_unique<UringQueue>(options);
  return queue->usable() ? std::move(queue) : nullptr;
}

}  // namespace headwater::disk
