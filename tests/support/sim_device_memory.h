#pragma once

#include "headwater/device/device.h"
#include "headwater/memory/device_memory.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace headwater::support {

/// Device bytes straight from a device, as a framework's allocator would hand them out: freed in
/// the order of the stream they were allocated on, after every other stream that used them.
/// Outlives its buffers.
class SimDeviceMemory final : public DeviceMemory {
 public:
  explicit SimDeviceMemory(Device& device) : device_(device) {}

  [[nodiscard]] Buffer try_allocate(std::size_t bytes, StreamRef stream) override {
    void* data = device_.try_allocate(bytes, stream);
    if (data == nullptr) {
      ++num_refused_;
      return {};
    }
    auto block = std::make_unique<Block>(Block{*this, data, bytes, stream, {}});
    return {data, bytes, block.release(), &free_block};
  }

  void record_use(const Buffer& buffer, StreamRef stream) override {
    static_cast<Block*>(buffer.owner())->users.push_back(stream);
  }

  /// Times there was no room.
  std::uint64_t num_refused() const { return num_refused_; }
  /// Streams that record_use was told of.
  static std::vector<StreamRef> users_of(const Buffer& buffer) {
    return static_cast<Block*>(buffer.owner())->users;
  }

 private:
  struct Block {
    SimDeviceMemory& memory;
    void* data;
    std::size_t bytes;
    StreamRef home;
    std::vector<StreamRef> users;
  };

  static void free_block(void* owner) {
    const std::unique_ptr<Block> block(static_cast<Block*>(owner));
    Device& device = block->memory.device_;
    for (const StreamRef user : block->users) {
      device.wait(block->home, device.record(user));
    }
    device.free(block->data, block->bytes, block->home);
  }

  Device& device_;
  std::uint64_t num_refused_ = 0;
};

}  // namespace headwater::support
