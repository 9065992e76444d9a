/// Counts the bytes of every CPU tensor, so that tests can check a peak they did not compute.
///
/// Wraps the CPU allocator in force. Each block carries a header with its size and the deleter of
/// the allocator it came from, so a block outlives uninstall() and finds its way back. Thread-safe.

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <pybind11/pybind11.h>

#include <atomic>
#include <cstddef>
#include <limits>
#include <stdexcept>

namespace {

/// Live bytes and their highest value.
class Counter final {
 public:
  void add(std::size_t bytes) {
    const std::size_t now = live_.fetch_add(bytes) + bytes;
    std::size_t peak = peak_.load();
    while (peak < now && !peak_.compare_exchange_weak(peak, now)) {
    }
  }
  void subtract(std::size_t bytes) { live_.fetch_sub(bytes); }
  void reset_peak() { peak_.store(live_.load()); }

  std::size_t live() const { return live_.load(); }
  std::size_t peak() const { return peak_.load(); }

 private:
  std::atomic<std::size_t> live_{0};
  std::atomic<std::size_t> peak_{0};
};

/// Sits before the bytes handed out; its size keeps them aligned as the inner allocator aligned it.
struct alignas(64) Header {
  std::size_t bytes;
  bool small;
  c10::DeleterFnPtr inner_deleter;
};

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override;
  void copy_data(void* destination, const void* source, std::size_t bytes) const override;
  c10::DeleterFnPtr raw_deleter() const override;

  void install();
  void uninstall();
  void release(void* data);

  /// Blocks below this many bytes are also counted on their own.
  std::atomic<std::size_t> floor{4096};
  /// Blocks that would bring the live bytes above this many are refused, as on a full device.
  std::atomic<std::size_t> cap{std::numeric_limits<std::size_t>::max()};
  Counter all;
  Counter small;

 private:
  c10::Allocator* inner_ = nullptr;
};

/// PyTorch keeps blocks and their deleter until the process ends, so the allocator must too.
CountingAllocator& counting() {
  static auto* const allocator = new CountingAllocator();
  return *allocator;
}

void delete_block(void* data) {
  if (data != nullptr) {
    counting().release(data);
  }
}

c10::DataPtr CountingAllocator::allocate(std::size_t bytes) {
  const c10::Device cpu(c10::DeviceType::CPU);
  if (bytes == 0) {
    return {nullptr, nullptr, &delete_block, cpu};
  }
  TORCH_CHECK_WITH(OutOfMemoryError, all.live() + bytes <= cap.load(), "out of memory: a test's");
  void* const block = inner_->raw_allocate(bytes + sizeof(Header));
  auto* const header = new (block) Header{bytes, bytes < floor.load(), inner_->raw_deleter()};
  all.add(bytes);
  if (header->small) {
    small.add(bytes);
  }
  void* const data = header + 1;
  return {data, data, &delete_block, cpu};
}

void CountingAllocator::copy_data(void* destination, const void* source, std::size_t bytes) const {
  default_copy_data(destination, source, bytes);
}

c10::DeleterFnPtr CountingAllocator::raw_deleter() const {
  return &delete_block;
}

void CountingAllocator::release(void* data) {
  auto* const header = static_cast<Header*>(data) - 1;
  all.subtract(header->bytes);
  if (header->small) {
    small.subtract(header->bytes);
  }
  header->inner_deleter(header);
}

/// Priority 0 replaces PyTorch's own allocator and can be replaced again by uninstall().
void set_cpu_allocator(c10::Allocator* allocator) {
  c10::SetAllocator(c10::DeviceType::CPU, allocator, /*priority=*/0);
  if (c10::GetAllocator(c10::DeviceType::CPU) != allocator) {
    throw std::runtime_error("CPU allocator was set with a higher priority; it cannot be replaced");
  }
}

void CountingAllocator::install() {
  c10::Allocator* const current = c10::GetAllocator(c10::DeviceType::CPU);
  if (current == this) {
    return;
  }
  if (current->raw_deleter() == nullptr) {
    throw std::runtime_error("CPU allocator has no raw deleter; it cannot be counted");
  }
  inner_ = current;
  set_cpu_allocator(this);
}

void CountingAllocator::uninstall() {
  if (c10::GetAllocator(c10::DeviceType::CPU) == this) {
    set_cpu_allocator(inner_);
  }
}

}  // namespace

PYBIND11_MODULE(headwater_counting_allocator, module) {
  module.doc() = "Counts live and peak bytes of CPU tensors.";
  module.def(
      "install", [] { counting().install(); }, "Starts counting new blocks.");
  module.def(
      "uninstall", [] { counting().uninstall(); }, "Gives PyTorch its allocator back.");
  module.def("live_bytes", [] { return counting().all.live(); });
  module.def("peak_bytes", [] { return counting().all.peak(); });
  module.def("small_live_bytes", [] { return counting().small.live(); });
  module.def("small_peak_bytes", [] { return counting().small.peak(); });
  module.def(
      "set_small_below",
      [](std::size_t bytes) { counting().floor.store(bytes); },
      "Blocks allocated from now on and smaller than this count as small (4096 at first).");
  module.def(
      "set_cap",
      [](std::size_t bytes) { counting().cap.store(bytes); },
      "Blocks that would bring the live bytes above this many are refused from now on.");
  module.def("reset_peak", [] {
    counting().all.reset_peak();
    counting().small.reset_peak();
  });
}
