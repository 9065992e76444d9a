#pragma once

#include "conformance/device_fixture.h"
#include "headwater/base/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace headwater::conformance {

TYPED_TEST_SUITE_P(DeviceSuite);

TYPED_TEST_P(DeviceSuite, SaysWhatItIs) {
  const DeviceInfo info = this->device().info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.total_bytes, 64_MiB);
  EXPECT_LE(info.free_bytes, info.total_bytes);
}

TYPED_TEST_P(DeviceSuite, BytesComeBackAsTheyWent) {
  void* data = this->device().try_allocate(this->kBytes, this->stream_);
  ASSERT_NE(data, nullptr);
  this->fill(0, 42);
  this->to_device(data, 0, this->stream_);
  this->to_host(1, data, this->stream_);
  this->finish(this->stream_);
  EXPECT_TRUE(this->holds(1, 42));
  this->device().free(data, this->kBytes, this->stream_);
}

TYPED_TEST_P(DeviceSuite, TheDefaultStreamNeedsNoCreation) {
  void* data = this->device().try_allocate(this->kBytes, kDefaultStream);
  this->fill(0, 43);
  this->to_device(data, 0, kDefaultStream);
  this->to_host(1, data, kDefaultStream);
  this->finish(kDefaultStream);
  EXPECT_TRUE(this->holds(1, 43));
  this->device().free(data, this->kBytes, kDefaultStream);
}

TYPED_TEST_P(DeviceSuite, AllocationsDoNotOverlap) {
  std::vector<void*> blocks;
  for (unsigned char i = 0; i < 4; ++i) {
    blocks.push_back(this->device().try_allocate(this->kBytes, this->stream_));
    this->fill(i, i);
    this->to_device(blocks.back(), i, this->stream_);
  }
  for (unsigned char i = 0; i < 4; ++i) {
    this->to_host(8U + i, blocks[i], this->stream_);
  }
  this->finish(this->stream_);
  for (unsigned char i = 0; i < 4; ++i) {
    EXPECT_TRUE(this->holds(8U + i, i));
    this->device().free(blocks[i], this->kBytes, this->stream_);
  }
}

TYPED_TEST_P(DeviceSuite, WorkOfOneStreamRunsInOrder) {
  void* data = this->device().try_allocate(this->kBytes, this->stream_);
  for (unsigned char i = 0; i < 8; ++i) {
    this->fill(i, i);
    this->to_device(data, i, this->stream_);
  }
  this->to_host(9, data, this->stream_);
  this->finish(this->stream_);
  EXPECT_TRUE(this->holds(9, 7));
  this->device().free(data, this->kBytes, this->stream_);
}

TYPED_TEST_P(DeviceSuite, AWaitingStreamSeesTheWorkBeforeTheEvent) {
  const StreamRef other = this->device().create_stream();
  void* data = this->device().try_allocate(this->kBytes, this->stream_);
  for (unsigned char i = 1; i <= 20; ++i) {
    this->fill(0, i);
    this->to_device(data, 0, this->stream_);
    this->device().wait(other, this->device().record(this->stream_));
    this->to_host(1, data, other);
    this->finish(other);
    ASSERT_TRUE(this->holds(1, i));
  }
  this->device().free(data, this->kBytes, this->stream_);
}

TYPED_TEST_P(DeviceSuite, StreamsMayWaitForEachOtherInTurn) {
  const StreamRef other = this->device().create_stream();
  void* data = this->device().try_allocate(this->kBytes, this->stream_);
  this->fill(0, 11);
  this->to_device(data, 0, this->stream_);
  this->device().wait(other, this->device().record(this->stream_));
  this->to_host(1, data, other);
  this->device().wait(this->stream_, this->device().record(other));
  this->to_device(data, 1, this->stream_);
  this->to_host(2, data, this->stream_);
  this->finish(this->stream_);
  EXPECT_TRUE(this->holds(2, 11));
  this->device().free(data, this->kBytes, this->stream_);
}

TYPED_TEST_P(DeviceSuite, AnEventIsDoneAfterSynchronize) {
  void* data = this->device().try_allocate(this->kBytes, this->stream_);
  this->to_device(data, 0, this->stream_);
  const Event event = this->device().record(this->stream_);
  const Event same = event;
  this->device().synchronize(event);
  EXPECT_TRUE(event.done());
  EXPECT_TRUE(same.done());
  this->device().free(data, this->kBytes, this->stream_);
}

TYPED_TEST_P(DeviceSuite, TheEmptyEventIsLongPast) {
  EXPECT_TRUE(Event().done());
  this->device().wait(this->stream_, Event());
  this->device().synchronize(Event());
}

TYPED_TEST_P(DeviceSuite, AnEventOfAnotherDeviceIsRejected) {
  class Foreign final : public Event::State {
    bool done() const override { return true; }
  };
  const Event event(std::make_shared<Foreign>());
  EXPECT_THROW(this->device().wait(this->stream_, event), InvalidArgument);
  EXPECT_THROW(this->device().synchronize(event), InvalidArgument);
}

TYPED_TEST_P(DeviceSuite, WithoutRoomThereIsNoAllocation) {
  const std::size_t total = this->device().info().total_bytes;
  EXPECT_EQ(this->device().try_allocate(2 * total, this->stream_), nullptr);
  void* data = this->device().try_allocate(this->kBytes, this->stream_);
  EXPECT_NE(data, nullptr);
  this->device().free(data, this->kBytes, this->stream_);
}

TYPED_TEST_P(DeviceSuite, FreedBytesServeTheSameStreamAgain) {
  const std::size_t bytes = this->device().info().free_bytes / 8 * 5;
  for (int i = 0; i < 4; ++i) {
    void* data = this->device().try_allocate(bytes, this->stream_);
    ASSERT_NE(data, nullptr);
    this->to_device(data, 0, this->stream_);
    this->device().free(data, bytes, this->stream_);
    this->finish(this->stream_);
  }
}

TYPED_TEST_P(DeviceSuite, WorkEnqueuedBeforeAFreeStillSeesTheBytes) {
  void* data = this->device().try_allocate(this->kBytes, this->stream_);
  this->fill(0, 17);
  this->to_device(data, 0, this->stream_);
  this->to_host(1, data, this->stream_);
  this->device().free(data, this->kBytes, this->stream_);
  this->finish(this->stream_);
  EXPECT_TRUE(this->holds(1, 17));
}

TYPED_TEST_P(DeviceSuite, CopiesOfNothingAndPartsAreFine) {
  void* data = this->device().try_allocate(this->kBytes, this->stream_);
  this->fill(0, 1);
  this->fill(1, 2);
  this->to_device(data, 0, this->stream_);
  this->device().copy(data, this->host(1), 0, Direction::kToDevice, this->stream_);
  auto* middle = static_cast<std::byte*>(data) + 100;
  this->device().copy(middle, this->host(1), 1, Direction::kToDevice, this->stream_);
  this->to_host(2, data, this->stream_);
  this->finish(this->stream_);
  EXPECT_EQ(this->host(2)[99], std::byte{1});
  EXPECT_EQ(this->host(2)[100], std::byte{2});
  EXPECT_EQ(this->host(2)[101], std::byte{1});
  this->device().free(data, this->kBytes, this->stream_);
}

TYPED_TEST_P(DeviceSuite, PackedNumbersComeBackAsTheyWent) {
  Device& device = this->device();
  if (!device.info().packs) {
    GTEST_SKIP() << "this device does not pack";
  }
  auto* there = reinterpret_cast<std::int64_t*>(this->host(0));
  auto* between = reinterpret_cast<std::uint16_t*>(this->host(4));
  auto* back = reinterpret_cast<std::int64_t*>(this->host(8));
  for (const std::size_t count : {1U, 3U, 4U, 8195U, 3 * 65'536U + 5}) {
    const std::size_t bytes = count * sizeof(std::int64_t);
    const std::size_t packed = packed_bytes(bytes, Packing::kWords);
    for (std::size_t i = 0; i < count; ++i) {
      there[i] = static_cast<std::int64_t>(i * 40'503 % kWordLimit);
    }
    std::fill_n(this->host(4), packed + 1, std::byte{77});
    std::fill_n(back, count, -1);
    void* data = device.try_allocate(bytes, this->stream_);
    device.copy(data, there, bytes, Direction::kToDevice, this->stream_);
    device.enqueue({between, data, bytes, Direction::kToHost, Packing::kWords}, this->stream_);
    device.copy(data, back, bytes, Direction::kToDevice, this->stream_);
    device.enqueue({data, between, bytes, Direction::kToDevice, Packing::kWords}, this->stream_);
    device.copy(back, data, bytes, Direction::kToHost, this->stream_);
    this->finish(this->stream_);
    EXPECT_TRUE(std::equal(there, there + count, back)) << count;
    EXPECT_TRUE(std::equal(there, there + count, between)) << count;
    EXPECT_EQ(this->host(4)[packed], std::byte{77}) << count;
    device.free(data, bytes, this->stream_);
  }
}

TYPED_TEST_P(DeviceSuite, TimedEventsTellHowLongTheWorkBetweenThemTook) {
  void* data = this->device().try_allocate(this->kBytes, this->stream_);
  const Event before = this->device().record_timed(this->stream_);
  this->to_device(data, 0, this->stream_);
  const Event between = this->device().record_timed(this->stream_);
  this->to_host(1, data, this->stream_);
  const Event after = this->device().record_timed(this->stream_);
  this->device().synchronize(after);
  ASSERT_TRUE(after.ns_since(before));
  ASSERT_TRUE(after.ns_since(between));
  EXPECT_GT(*after.ns_since(before), *after.ns_since(between));
  EXPECT_FALSE(after.ns_since(Event()));
  EXPECT_FALSE(Event().ns_since(before));
  this->device().free(data, this->kBytes, this->stream_);
}

TYPED_TEST_P(DeviceSuite, ThreadsUseStreamsOfTheirOwn) {
  std::vector<std::jthread> threads;
  for (unsigned char i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      const StreamRef stream = this->device().create_stream();
      void* data = this->device().try_allocate(this->kBytes, stream);
      this->fill(i, i);
      this->to_device(data, i, stream);
      this->to_host(8U + i, data, stream);
      this->device().free(data, this->kBytes, stream);
      this->finish(stream);
    });
  }
  threads.clear();
  for (unsigned char i = 0; i < 4; ++i) {
    EXPECT_TRUE(this->holds(8U + i, i));
  }
}

REGISTER_TYPED_TEST_SUITE_P(DeviceSuite,
                            SaysWhatItIs,
                            BytesComeBackAsTheyWent,
                            TheDefaultStreamNeedsNoCreation,
                            AllocationsDoNotOverlap,
                            WorkOfOneStreamRunsInOrder,
                            AWaitingStreamSeesTheWorkBeforeTheEvent,
                            StreamsMayWaitForEachOtherInTurn,
                            AnEventIsDoneAfterSynchronize,
                            TheEmptyEventIsLongPast,
                            AnEventOfAnotherDeviceIsRejected,
                            WithoutRoomThereIsNoAllocation,
                            FreedBytesServeTheSameStreamAgain,
                            WorkEnqueuedBeforeAFreeStillSeesTheBytes,
                            CopiesOfNothingAndPartsAreFine,
                            PackedNumbersComeBackAsTheyWent,
                            TimedEventsTellHowLongTheWorkBetweenThemTook,
                            ThreadsUseStreamsOfTheirOwn);

}  // namespace headwater::conformance
