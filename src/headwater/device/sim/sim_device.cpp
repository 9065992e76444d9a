#include "headwater/device/sim/sim_device.h"

#include "headwater/base/error.h"
#include "headwater/device/host/host_copy.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace headwater::sim {
namespace {

constexpr std::align_val_t kAlignment{64};

/// Done once the clock has reached its time.
class Moment final : public Event::State {
 public:
  Moment(const Clock& clock, std::uint64_t time_ns) : clock_(clock), time_ns_(time_ns) {}
  bool done() const override { return clock_.now_ns() >= time_ns_; }
  std::optional<std::uint64_t> ns_since(const State& earlier) const override {
    const auto* other = dynamic_cast<const Moment*>(&earlier);
    return done() && other != nullptr ? std::optional(time_ns_ - other->time_ns_) : std::nullopt;
  }
  std::uint64_t time_ns() const { return time_ns_; }

 private:
  const Clock& clock_;
  const std::uint64_t time_ns_;
};

// Zero, which is long past, for the empty event.
std::uint64_t time_of(const Event& event) {
  if (event.state() == nullptr) {
    return 0;
  }
  const auto* moment = dynamic_cast<const Moment*>(event.state());
  if (moment == nullptr) {
    throw InvalidArgument(
        "Event belongs to another device: it was not recorded on a simulated device");
  }
  return moment->time_ns();
}

}  // namespace

Device::Device(Clock& clock, Options options)
    : clock_(clock), options_(std::move(options)), timeline_(options_.link) {}

Device::~Device() {
  for (const auto& [data, bytes] : allocations_) {
    ::operator delete(const_cast<std::byte*>(data), kAlignment);
  }
}

DeviceInfo Device::info() const {
  const MutexLock lock(mutex_);
  std::size_t free_bytes = options_.capacity - used_;
  for (const Return& one : returns_) {
    free_bytes += one.time_ns <= clock_.now_ns() ? one.bytes : 0;
  }
  return {.name = options_.name,
          .total_bytes = options_.capacity,
          .free_bytes = free_bytes,
          .packs = true};
}

void* Device::try_allocate(std::size_t bytes, StreamRef stream) {
  const MutexLock lock(mutex_);
  if (!make_room(bytes, index_of(stream))) {
    return nullptr;
  }
  void* data = ::operator new(std::max<std::size_t>(bytes, 1), kAlignment, std::nothrow);
  if (data != nullptr) {
    allocations_.emplace(static_cast<std::byte*>(data), bytes);
    used_ += bytes;
  }
  return data;
}

void Device::free(void* data, std::size_t bytes, StreamRef stream) {
  const MutexLock lock(mutex_);
  const std::size_t index = index_of(stream);
  const auto found = allocations_.find(static_cast<std::byte*>(data));
  if (found == allocations_.end() || found->second != bytes) {
    throw InvalidArgument("Free of bytes that are not allocated on the simulated device: asked " +
                          std::to_string(bytes) + " bytes");
  }
  allocations_.erase(found);
  ::operator delete(data, kAlignment);
  returns_.push_back({timeline_.end_of(index), index, bytes});
}

void Device::enqueue(const Copy& copy, StreamRef stream) {
  {
    const MutexLock lock(mutex_);
    check_inside(copy.direction == Direction::kToDevice ? copy.target : copy.source, copy.bytes);
    const std::size_t moved = packed_bytes(copy.bytes, copy.packing);
    timeline_.copy(index_of(stream), copy.direction, moved, clock_.now_ns());
  }
  host::copy_now(copy);
}

StreamRef Device::create_stream() {
  const MutexLock lock(mutex_);
  return StreamRef(timeline_.add_stream());
}

Event Device::record_event(StreamRef stream, Timing /*timing*/) {
  const MutexLock lock(mutex_);
  return Event(std::make_shared<Moment>(clock_, timeline_.end_of(index_of(stream))));
}

void Device::wait(StreamRef stream, const Event& event) {
  const std::uint64_t time_ns = time_of(event);
  const MutexLock lock(mutex_);
  timeline_.delay(index_of(stream), time_ns);
}

void Device::synchronize(const Event& event) {
  clock_.advance_to(time_of(event));
}

void Device::compute(StreamRef stream, std::uint64_t duration_ns) {
  const MutexLock lock(mutex_);
  timeline_.compute(index_of(stream), duration_ns, clock_.now_ns());
}

std::size_t Device::index_of(StreamRef stream) const {
  if (stream.native() >= timeline_.num_streams()) {
    throw InvalidArgument("Stream does not exist on the simulated device: number " +
                          std::to_string(stream.native()));
  }
  return stream.native();
}

bool Device::make_room(std::size_t bytes, std::size_t stream) {
  const std::uint64_t now_ns = clock_.now_ns();
  std::erase_if(returns_, [&](const Return& one) HEADWATER_REQUIRES(mutex_) {
    const bool back = one.time_ns <= now_ns;
    used_ -= back ? one.bytes : 0;
    return back;
  });
  const std::size_t room = options_.capacity - used_;
  return bytes <= room || take_returning(bytes - room, stream);
}

// Work on a stream may use what the same stream freed before it, without anybody waiting.
bool Device::take_returning(std::size_t bytes, std::size_t stream) {
  std::size_t returning = 0;
  for (const Return& one : returns_) {
    returning += one.stream == stream ? one.bytes : 0;
  }
  if (returning < bytes) {
    return false;
  }
  for (Return& one : returns_) {
    const std::size_t part = one.stream == stream ? std::min(bytes, one.bytes) : 0;
    one.bytes -= part;
    bytes -= part;
    used_ -= part;
  }
  return true;
}

void Device::check_inside(const void* data, std::size_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(data);
  const auto next = allocations_.upper_bound(begin);
  if (next == allocations_.begin()) {
    return;  // bytes of another allocator
  }
  const auto& [base, size] = *std::prev(next);
  const auto offset = static_cast<std::size_t>(begin - base);
  if (offset < size && bytes > size - offset) {
    throw InvalidArgument(
        "Copy passes the end of an allocation of the simulated device: " + std::to_string(bytes) +
        " bytes at offset " + std::to_string(offset) + " of " + std::to_string(size));
  }
}

}  // namespace headwater::sim
