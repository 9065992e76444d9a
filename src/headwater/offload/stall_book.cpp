#include "headwater/offload/stall_book.h"

#include <algorithm>
#include <utility>

namespace headwater {
namespace {

std::uint64_t to_ns(StallBook::Clock::duration time) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
}

}  // namespace

StallBook::Wait::Wait(StallBook& book, std::uint64_t& total_ns, std::string_view op)
    : book_(book), total_ns_(total_ns), outer_(std::exchange(book.op_, op)) {}

StallBook::Wait::~Wait() {
  book_.op_ = outer_;
  total_ns_ += to_ns(Clock::now() - begin_);
}

void StallBook::add(Direction direction, const Tensor& tensor, Clock::time_point begin) {
  count(direction, tensor, Clock::now() - begin);
}

void StallBook::add_if_noticed(Direction direction, const Tensor& tensor, Clock::time_point begin) {
  if (const Clock::duration spent = Clock::now() - begin; spent >= kNoticed) {
    count(direction, tensor, spent);
  }
}

void StallBook::count(Direction direction, const Tensor& tensor, Clock::duration spent) {
  Kind kind{std::string(op_), direction, tensor.bytes};
  if (counts_.size() >= kMostKinds && !counts_.contains(kind)) {
    kind = {std::string(kOthers), direction, 0};
  }
  Count& count = counts_[kind];
  count.tensor = tensor.id;
  ++count.num_waits;
  count.host_ns += to_ns(spent);
  count.bytes += link_bytes(tensor);
}

std::vector<Stall> StallBook::worst(std::size_t num, const Costs* links) const {
  std::vector<Stall> stalls;
  for (const auto& [kind, count] : counts_) {
    Stall stall{.op = kind.op,
                .direction = kind.direction,
                .tensor_bytes = kind.bytes,
                .tensor = count.tensor,
                .num_waits = count.num_waits,
                .host_ns = count.host_ns,
                .wait_ns = count.host_ns};
    if (links != nullptr) {
      const bool up = kind.direction == Direction::kToDevice;
      const Link& link = up ? links->fetch : links->offload;
      const std::uint64_t latencies = (count.num_waits - 1) * link.latency_ns;
      stall.wait_ns = std::max(stall.wait_ns, link.transfer_ns(count.bytes) + latencies);
    }
    stalls.push_back(std::move(stall));
  }
  const std::size_t kept = std::min(num, stalls.size());
  const auto end = stalls.begin() + static_cast<std::ptrdiff_t>(kept);
  std::partial_sort(stalls.begin(), end, stalls.end(), [](const Stall& a, const Stall& b) {
    return a.wait_ns > b.wait_ns;
  });
  stalls.erase(end, stalls.end());
  return stalls;
}

}  // namespace headwater
