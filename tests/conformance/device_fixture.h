#pragma once

#include "headwater/base/bytes.h"
#include "headwater/device/device.h"
#include "headwater/device/host_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>

namespace headwater::conformance {

using namespace literals;  // NOLINT(google-build-using-namespace)

/// What every Device must do. A Backend is a default-constructible struct with
///   static bool available();      false where its hardware is missing: the suite then skips
///   Device& device();             with room for 64 MiB at least
///   HostMemory& host_memory();    with room for 64 MiB at least
template <class Backend>
class DeviceSuite : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 1_MiB;

  void SetUp() override {
    if (!Backend::available()) {
      GTEST_SKIP() << "no such device on this machine";
    }
    backend_ = std::make_unique<Backend>();
    host_ = static_cast<std::byte*>(backend_->host_memory().try_allocate(kHostBytes));
    ASSERT_NE(host_, nullptr);
    stream_ = device().create_stream();
  }

  void TearDown() override {
    if (host_ != nullptr) {
      backend_->host_memory().free(host_, kHostBytes);
    }
  }

  Device& device() { return backend_->device(); }

  std::byte* host(std::size_t slot) { return host_ + slot * kBytes; }

  void fill(std::size_t slot, unsigned char value) {
    std::fill_n(host(slot), kBytes, std::byte{value});
  }

  bool holds(std::size_t slot, unsigned char value) {
    return std::all_of(
        host(slot), host(slot) + kBytes, [=](std::byte byte) { return byte == std::byte{value}; });
  }

  void to_device(void* target, std::size_t slot, StreamRef stream) {
    device().copy(target, host(slot), kBytes, Direction::kToDevice, stream);
  }

  void to_host(std::size_t slot, const void* source, StreamRef stream) {
    device().copy(host(slot), source, kBytes, Direction::kToHost, stream);
  }

  void finish(StreamRef stream) { device().synchronize(device().record(stream)); }

  static constexpr std::size_t kHostBytes = 16 * kBytes;
  std::unique_ptr<Backend> backend_;
  std::byte* host_ = nullptr;
  StreamRef stream_ = kDefaultStream;
};

}  // namespace headwater::conformance
