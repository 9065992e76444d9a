#include "headwater/base/bytes.h"
#include "headwater/device/disk/disk_error.h"
#include "headwater/offload/tensor_cache.h"
#include "support/cache_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using disk::IoKind;
using support::CacheRig;
using support::IoFault;
using support::pattern;
using testing::HasSubstr;

bool only_on_disk(const Tensor& tensor) {
  return tensor.residency == Residency::kHost && !tensor.host &&
         tensor.disk.state == DiskState::kCurrent;
}

/// Room for two tensors of 1 KiB on the device, two on the host and sixteen on disk.
class TensorCacheDiskTest : public testing::Test {
 protected:
  void TearDown() override {
    rig_.disk->queue.repair();
    EXPECT_EQ(rig_.pinned_bytes(), 0U);
    EXPECT_LE(rig_.budget.used(), rig_.budget.limit());
    rig_.check();
  }

  /// Tensors with their number for a seed.
  std::vector<Tensor*> make(unsigned number) {
    std::vector<Tensor*> tensors;
    for (unsigned i = 0; i < number; ++i) {
      tensors.push_back(&rig_.make(1_KiB, i));
    }
    return tensors;
  }

  void expect_bytes(const std::vector<Tensor*>& tensors) {
    for (unsigned i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ(rig_.bytes_of(*tensors[i]), pattern(i, 1_KiB)) << "tensor " << i;
    }
  }

  template <typename Failure>
  std::string read_failure(Tensor& tensor) {
    try {
      rig_.read(tensor);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "nothing failed";
  }

  CacheRig rig_{{.budget = 2_KiB, .first_host_bytes = 2_KiB, .disk_bytes = 64_KiB}};
};

TEST_F(TensorCacheDiskTest, WhatTheHostHasNoRoomForGoesToDiskOldestFirst) {
  const std::vector<Tensor*> tensors = make(6);
  EXPECT_TRUE(only_on_disk(*tensors[0]));
  EXPECT_TRUE(only_on_disk(*tensors[1]));
  EXPECT_TRUE(tensors[2]->host && tensors[3]->host);
  EXPECT_EQ(rig_.first_pool.block_bytes(), 2_KiB);
  EXPECT_GE(rig_.statistics().bytes_stowed, 2_KiB);
  expect_bytes(tensors);
}

TEST_F(TensorCacheDiskTest, ATensorOnDiskComesBackWhenItIsUsed) {
  const std::vector<Tensor*> tensors = make(6);
  for (const unsigned round : {1U, 2U, 3U}) {
    for (Tensor* tensor : tensors) {
      rig_.read(*tensor);
      EXPECT_TRUE(on_device(tensor->residency)) << "round " << round;
      rig_.check();
    }
    expect_bytes(tensors);
  }
  EXPECT_GT(rig_.statistics().bytes_recalled, 0U);
}

TEST_F(TensorCacheDiskTest, OnceTheDeviceHasRoomAgainAllCanBeReadHoweverFullTheHostIs) {
  std::vector<Tensor*> tensors;
  unsigned number = 0;
  EXPECT_THROW(
      for (; number < 100; ++number) { tensors.push_back(&rig_.make(1_KiB, number)); },
      OutOfMemory);
  rig_.budget.set_limit(100_KiB);
  for (Tensor* tensor : tensors) {
    rig_.read(*tensor);
  }
  expect_bytes(tensors);
}

TEST_F(TensorCacheDiskTest, AnOperatorMayNeedEverythingThatIsOnHostAndDisk) {
  const std::vector<Tensor*> tensors = make(6);
  rig_.use({{tensors[0], AccessKind::kRead}, {tensors[2], AccessKind::kWrite}});
  rig_.use({{tensors[1], AccessKind::kWrite}, {tensors[3], AccessKind::kRead}});
  expect_bytes(tensors);
}

TEST_F(TensorCacheDiskTest, BytesThatAreOnDiskAlreadyAreNotWrittenAgain) {
  const std::vector<Tensor*> tensors = make(8);
  for (const unsigned round : {1U, 2U, 3U}) {
    for (Tensor* tensor : tensors) {
      rig_.read(*tensor);
    }
    EXPECT_LE(rig_.statistics().num_stows, tensors.size()) << "round " << round;
  }
  expect_bytes(tensors);
}

TEST_F(TensorCacheDiskTest, AWriteMakesTheCopyOnDiskWorthless) {
  const std::vector<Tensor*> tensors = make(6);
  rig_.write(*tensors[0]);
  EXPECT_EQ(tensors[0]->disk.state, DiskState::kNone);
  rig_.fill(*tensors[0], 77);
  for (Tensor* tensor : {tensors[1], tensors[2], tensors[3], tensors[4], tensors[5]}) {
    rig_.read(*tensor);
  }
  EXPECT_FALSE(on_device(tensors[0]->residency));
  EXPECT_EQ(rig_.bytes_of(*tensors[0]), pattern(77, 1_KiB));
}

TEST_F(TensorCacheDiskTest, AForgottenTensorGivesItsDiskBytesBack) {
  const std::vector<Tensor*> tensors = make(7);
  for (Tensor* tensor : tensors) {
    rig_.forget(*tensor);
  }
  EXPECT_EQ(rig_.disk_pool->block_bytes(), 0U);
}

TEST_F(TensorCacheDiskTest, AFetchAheadOfNeedBeginsToReadAndWaitsForNobody) {
  const std::vector<Tensor*> tensors = make(6);
  rig_.forget(*tensors[2]);  // room on the host
  EXPECT_FALSE(rig_.start_fetch(*tensors[0]));
  EXPECT_EQ(tensors[0]->disk.state, DiskState::kReading);
  rig_.check();
  rig_.read(*tensors[0]);
  EXPECT_EQ(rig_.bytes_of(*tensors[0]), pattern(0, 1_KiB));
  EXPECT_EQ(rig_.statistics().num_recalls_ahead, 1U);
}

TEST_F(TensorCacheDiskTest, WhatWasReadAheadLeavesTheHostAgainForWhoHasToGoThere) {
  const std::vector<Tensor*> tensors = make(6);  // two each on disk, on the host, on the device
  for (const std::size_t gone : {2U, 3U, 5U}) {
    rig_.forget(*tensors[gone]);
  }
  static_cast<void>(rig_.start_fetch(*tensors[0]));
  static_cast<void>(rig_.start_fetch(*tensors[1]));
  ASSERT_EQ(tensors[0]->disk.state, DiskState::kReading);
  ASSERT_EQ(tensors[1]->disk.state, DiskState::kReading);
  rig_.make(1_KiB, 10);
  EXPECT_EQ(rig_.shortage_of({}, {.op = "op", .new_bytes = 1_KiB}), std::nullopt);
  rig_.read(*tensors[0]);
  EXPECT_EQ(rig_.bytes_of(*tensors[0]), pattern(0, 1_KiB));
  rig_.read(*tensors[1]);
  EXPECT_EQ(rig_.bytes_of(*tensors[1]), pattern(1, 1_KiB));
}

TEST_F(TensorCacheDiskTest, WhereTheDiskIsForgottenNobodyCountsOnItForBytesThatAreElsewhere) {
  const std::vector<Tensor*> tensors = make(6);
  rig_.read(*tensors[0]);
  rig_.read(*tensors[1]);  // both unchanged, on the device and on disk
  {
    const MutexLock lock(rig_.cache.mutex());
    rig_.cache.synchronize();
    rig_.cache.forget_streams();
  }
  for (const Tensor* tensor : tensors) {
    EXPECT_TRUE(tensor->disk.state == DiskState::kNone || only_on_disk(*tensor));
  }
  expect_bytes(tensors);
}

TEST_F(TensorCacheDiskTest, WhatWasReadAheadCanBeFetchedAheadOrForgotten) {
  const std::vector<Tensor*> tensors = make(6);
  rig_.forget(*tensors[2]);
  rig_.forget(*tensors[3]);
  rig_.forget(*tensors[5]);
  static_cast<void>(rig_.start_fetch(*tensors[0]));
  static_cast<void>(rig_.start_fetch(*tensors[1]));
  rig_.forget(*tensors[1]);
  while (!tensors[0]->disk.transfer.done()) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(rig_.start_fetch(*tensors[0]));
  EXPECT_EQ(tensors[0]->residency, Residency::kFetching);
  rig_.read(*tensors[0]);
  EXPECT_EQ(rig_.bytes_of(*tensors[0]), pattern(0, 1_KiB));
}

TEST_F(TensorCacheDiskTest, ClosingBringsEverythingBackFromDisk) {
  const std::vector<Tensor*> tensors = make(9);
  expect_bytes(tensors);
  rig_.budget.set_limit(16_KiB);
  rig_.return_all();
  EXPECT_EQ(rig_.listener.returned().size(), 9U);
  EXPECT_EQ(rig_.disk_pool->block_bytes(), 0U);
  rig_.listener.give_up();
}

TEST_F(TensorCacheDiskTest, ClosingNeedsNoRoomOnDisk) {
  CacheRig rig({.budget = 2_KiB, .first_host_bytes = 2_KiB, .disk_bytes = 8_KiB});
  for (unsigned i = 0; i < 6; ++i) {
    rig.make(1_KiB, i);
  }
  rig.budget.set_limit(16_KiB);
  rig.return_all();
  EXPECT_EQ(rig.listener.returned().size(), 6U);
  rig.listener.give_up();
}

TEST_F(TensorCacheDiskTest, AFullDiskIsToldAndLosesNothing) {
  std::vector<Tensor*> tensors = make(4 + 16);
  const Tensor& oldest = *tensors[4 + 15];
  EXPECT_TRUE(on_device(oldest.residency));
  try {
    make(1);
    FAIL() << "the disk is not full";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.shortage().note,
              "the host tiers and the disk are full: raise host_budget or disk_budget");
  }
  expect_bytes(tensors);
}

TEST_F(TensorCacheDiskTest, CopiesOnDiskThatAreNotTheOnlyOnesMakeRoomThere) {
  const std::vector<Tensor*> tensors = make(17);
  for (Tensor* tensor : tensors) {
    rig_.read(*tensor);
  }
  EXPECT_EQ(rig_.disk_pool->block_bytes(), 64_KiB);
  make(1);
  expect_bytes(tensors);
}

TEST_F(TensorCacheDiskTest, AWriteThatFailsIsTriedElsewhere) {
  for (const IoFault fault : {IoFault::kError, IoFault::kNoSpace}) {
    const std::vector<Tensor*> tensors = make(4);
    rig_.disk->queue.fail(IoKind::kWrite, 1, fault);
    make(2);
    expect_bytes(tensors);
  }
  EXPECT_TRUE(rig_.disk->messages.empty());  // of errors: it was none
}

TEST_F(TensorCacheDiskTest, WritesThatKeepFailingLeaveTheBytesOnTheHost) {
  const std::vector<Tensor*> tensors = make(4);
  rig_.disk->queue.fail_all(IoKind::kWrite, IoFault::kError);
  for (const int attempt : {1, 2}) {
    try {
      make(1);
      FAIL() << "attempt " << attempt;
    } catch (const OutOfMemory& error) {
      EXPECT_THAT(error.shortage().note, HasSubstr("the disk fails"));
    }
  }
  expect_bytes(tensors);
  ASSERT_EQ(rig_.disk->messages.size(), 1U);
  EXPECT_THAT(rig_.disk->messages.front(), HasSubstr("no more tensors go there"));
}

TEST_F(TensorCacheDiskTest, AReadThatFailsOnceIsRepeatedUnseen) {
  const std::vector<Tensor*> tensors = make(6);
  rig_.disk->queue.fail(IoKind::kRead, 1, IoFault::kError);
  rig_.read(*tensors[0]);
  EXPECT_EQ(rig_.bytes_of(*tensors[0]), pattern(0, 1_KiB));
}

TEST_F(TensorCacheDiskTest, AFailingReadIsToldAndCanBeRepeated) {
  const std::vector<Tensor*> tensors = make(6);
  rig_.disk->queue.fail_all(IoKind::kRead, IoFault::kError);
  EXPECT_THAT(read_failure<DiskError>(*tensors[0]),
              HasSubstr("A tensor cannot be read back from disk. Nothing else is lost, and the "
                        "read can be tried again: tensor 1 KiB. Disk read failed."));
  EXPECT_TRUE(only_on_disk(*tensors[0]));
  rig_.check();
  rig_.disk->queue.repair();
  rig_.read(*tensors[0]);
  expect_bytes(tensors);
}

TEST_F(TensorCacheDiskTest, ATruncatedFileIsToldAndTheRestStaysUsable) {
  const std::vector<Tensor*> tensors = make(6);
  rig_.disk->queue.fail_all(IoKind::kRead, IoFault::kTruncated);
  EXPECT_THAT(read_failure<DiskTruncated>(*tensors[1]), HasSubstr("Store file ends too early"));
  rig_.disk->queue.repair();
  for (Tensor* tensor : tensors) {
    rig_.read(*tensor);
  }
  expect_bytes(tensors);
}

TEST_F(TensorCacheDiskTest, BytesThatChangedOnDiskNeverReachTheDevice) {
  const std::vector<Tensor*> tensors = make(6);
  rig_.disk->queue.fail(IoKind::kRead, 1, IoFault::kCorrupt);
  EXPECT_THAT(read_failure<DiskCorrupt>(*tensors[0]), HasSubstr("not those written"));
  EXPECT_TRUE(only_on_disk(*tensors[0]));
  for (unsigned i = 1; i < tensors.size(); ++i) {
    rig_.read(*tensors[i]);
    EXPECT_EQ(rig_.bytes_of(*tensors[i]), pattern(i, 1_KiB));
  }
  rig_.forget(*tensors[0]);
}

TEST_F(TensorCacheDiskTest, AReadAheadThatFailsIsToldWhenTheBytesAreNeeded) {
  const std::vector<Tensor*> tensors = make(6);
  rig_.forget(*tensors[2]);
  rig_.disk->queue.fail_all(IoKind::kRead, IoFault::kError);
  static_cast<void>(rig_.start_fetch(*tensors[0]));
  EXPECT_THAT(read_failure<DiskError>(*tensors[0]), HasSubstr("tried again"));
  rig_.disk->queue.repair();
  rig_.read(*tensors[0]);
  EXPECT_EQ(rig_.bytes_of(*tensors[0]), pattern(0, 1_KiB));
}

TEST_F(TensorCacheDiskTest, ATensorLargerThanTheHostBudgetStaysOnTheDevice) {
  const std::vector<Tensor*> tensors = make(4);
  rig_.budget.set_limit(8_KiB);
  rig_.make(3_KiB, 9);
  EXPECT_EQ(rig_.reclaim(8_KiB), 2_KiB);  // the others
  EXPECT_EQ(rig_.first_pool.block_bytes(), 2_KiB);
  expect_bytes(tensors);
}

/// Streams with threads of their own: a host block is written to disk after its copy has ended.
TEST(TensorCacheDiskThreadsTest, CopiesEndBeforeTheirBytesGoToDisk) {
  CacheRig rig({.budget = 256_KiB,
                .first_host_bytes = 256_KiB,
                .kind = support::DeviceKind::kHost,
                .disk_bytes = 4_MiB});
  const StreamRef stream = rig.device.create_stream();
  std::vector<Tensor*> tensors;
  for (unsigned i = 0; i < 16; ++i) {
    tensors.push_back(&rig.make(64_KiB, i, stream));
  }
  for (unsigned i = 0; i < tensors.size(); ++i) {
    rig.read(*tensors[i], stream);
    rig.start_write_back(*tensors[(i + 1) % tensors.size()]);
    static_cast<void>(rig.start_fetch(*tensors[(i + 2) % tensors.size()], stream));
    EXPECT_EQ(rig.bytes_of(*tensors[i]), pattern(i, 64_KiB));
    rig.check();
  }
}

}  // namespace
}  // namespace headwater
