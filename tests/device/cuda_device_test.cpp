#include "headwater/device/cuda/cuda_device.h"

#include "headwater/base/bytes.h"
#include "headwater/base/error.h"
#include "headwater/device/cuda/pinned_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <thread>

namespace headwater::cuda {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

bool has_device() {
  const auto driver = try_load_driver();
  return driver && num_devices(*driver) > 0;
}

TEST(MissingCudaDeviceTest, IsReportedClearly) {
  if (has_device()) {
    EXPECT_THROW(Device::create(-1), InvalidArgument);
    EXPECT_THROW(Device::create(1000), InvalidArgument);
  } else {
    EXPECT_THROW(Device::create(0), Error);
  }
}

class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_device()) {
      GTEST_SKIP() << "no such device on this machine";
    }
    device_ = Device::create(0);
  }

  Context current() {
    Context context = nullptr;
    device_->context().driver().context_get_current(&context);
    return context;
  }

  std::unique_ptr<Device> device_;
};

TEST_F(CudaDeviceTest, LeavesTheThreadsContextAsItWas) {
  std::jthread([this] {
    EXPECT_EQ(current(), nullptr);
    const Event event = device_->record(device_->create_stream());
    device_->synchronize(event);
    EXPECT_EQ(current(), nullptr);
  }).join();
}

TEST_F(CudaDeviceTest, AFailedCallCarriesTheDriversText) {
  std::byte byte{};
  try {
    device_->copy(nullptr, &byte, 1, Direction::kToDevice, kDefaultStream);
    FAIL() << "copied to nowhere";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("cuMemcpyHtoDAsync: invalid argument (code 1)"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(CudaDeviceTest, AnEventIsPendingUntilItsCopyIsDone) {
  PinnedMemory memory(device_->context());
  void* host = memory.try_allocate(256_MiB);
  void* data = device_->try_allocate(256_MiB, kDefaultStream);
  ASSERT_TRUE(host != nullptr && data != nullptr);
  device_->copy(data, host, 256_MiB, Direction::kToDevice, kDefaultStream);
  const Event event = device_->record(kDefaultStream);
  EXPECT_FALSE(event.done());
  device_->synchronize(event);
  EXPECT_TRUE(event.done());
  device_->free(data, 256_MiB, kDefaultStream);
  memory.free(host, 256_MiB);
}

TEST_F(CudaDeviceTest, AnEventIsPendingAlsoWhereTheDriversWasUsedBefore) {
  device_->synchronize(device_->record(kDefaultStream));  // done, and dropped
  PinnedMemory memory(device_->context());
  void* host = memory.try_allocate(256_MiB);
  void* data = device_->try_allocate(256_MiB, kDefaultStream);
  ASSERT_TRUE(host != nullptr && data != nullptr);
  device_->copy(data, host, 256_MiB, Direction::kToDevice, kDefaultStream);
  const Event event = device_->record(kDefaultStream);
  EXPECT_FALSE(event.done());
  device_->synchronize(event);
  EXPECT_TRUE(event.done());
  device_->free(data, 256_MiB, kDefaultStream);
  memory.free(host, 256_MiB);
}

TEST_F(CudaDeviceTest, PinnedMemoryIsUsableToItsLastByte) {
  PinnedMemory memory(device_->context());
  for (const std::size_t bytes : {std::size_t{1}, 4_KiB + 1, 100_MiB + 64}) {
    auto* host = static_cast<std::byte*>(memory.try_allocate(bytes));
    ASSERT_NE(host, nullptr);
    host[bytes - 1] = std::byte{1};
    memory.free(host, bytes);
  }
  EXPECT_EQ(memory.tier(), Tier::kPinnedHost);
}

TEST_F(CudaDeviceTest, PinnedMemoryBeyondTheMachineIsRefused) {
  EXPECT_EQ(PinnedMemory(device_->context()).try_allocate(std::size_t{1} << 60), nullptr);
}

}  // namespace
}  // namespace headwater::cuda
