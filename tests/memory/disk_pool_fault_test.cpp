#include "headwater/base/bytes.h"
#include "headwater/device/disk/disk_error.h"
#include "headwater/memory/disk_pool.h"
#include "support/disk_rig.h"
#include "support/mounted_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using disk::IoKind;
using support::IoFault;
using testing::ElementsAre;
using testing::StartsWith;

class DiskPoolFaultTest : public testing::Test {
 protected:
  void TearDown() override { pool_.check_invariants(); }

  DiskTransfer write() { return pool_.write(block_, bytes_.data(), bytes_.size()); }
  DiskTransfer read() { return pool_.read(block_, target_.data(), target_.size()); }

  support::DiskRig rig_;
  DiskPool pool_{rig_.file, rig_.queue, rig_.budget, {.extent_bytes = 1_MiB}};
  std::vector<std::byte> bytes_ = support::random_bytes(300'001, 1);
  std::vector<std::byte> target_ = std::vector<std::byte>(bytes_.size());
  DiskBlock block_ = pool_.try_allocate(bytes_.size());
};

TEST_F(DiskPoolFaultTest, AFailedWriteLeavesTheBlockUnwritten) {
  write().wait();
  rig_.queue.fail(IoKind::kWrite, 1, IoFault::kError);
  EXPECT_THROW(write().wait(), DiskError);
  EXPECT_EQ(block_.checksum(), std::nullopt);
  write().wait();
  read().wait();
  EXPECT_EQ(target_, bytes_);
}

TEST_F(DiskPoolFaultTest, AFullDiskShowsWhenTheWriteIsWaitedFor) {
  rig_.queue.fail(IoKind::kWrite, 2, IoFault::kNoSpace);
  EXPECT_THROW(write().wait(), DiskFull);
}

TEST_F(DiskPoolFaultTest, AFailedReadCanBeTriedAgain) {
  write().wait();
  rig_.queue.fail(IoKind::kRead, 1, IoFault::kError);
  EXPECT_THROW(read().wait(), DiskError);
  read().wait();
  EXPECT_EQ(target_, bytes_);
}

TEST_F(DiskPoolFaultTest, ATruncatedFileShowsWhenTheReadIsWaitedFor) {
  write().wait();
  rig_.queue.fail(IoKind::kRead, 2, IoFault::kTruncated);
  EXPECT_THROW(read().wait(), DiskTruncated);
}

TEST_F(DiskPoolFaultTest, BytesThatChangedOnTheDiskAreToldWithTheirPlace) {
  write().wait();
  for (const std::size_t nth : {1U, 2U}) {
    rig_.queue.fail(IoKind::kRead, nth, IoFault::kCorrupt);
    try {
      read().wait();
      FAIL() << "nothing was noticed";
    } catch (const DiskCorrupt& failure) {
      EXPECT_STREQ(failure.what(),
                   "Bytes read from disk are not those written. Check the disk behind the disk "
                   "folder: 293 KiB at offset 0 bytes");
    }
    write().wait();
  }
}

TEST_F(DiskPoolFaultTest, BytesThatWereWrittenWrongAreSeenWhenRead) {
  rig_.queue.fail(IoKind::kWrite, 1, IoFault::kCorrupt);
  write().wait();
  EXPECT_THROW(read().wait(), DiskCorrupt);
}

TEST_F(DiskPoolFaultTest, OtherTransfersGoOnAfterAFailure) {
  rig_.queue.fail(IoKind::kWrite, 1, IoFault::kError);
  DiskTransfer failing = write();
  EXPECT_THROW(failing.wait(), DiskError);
  DiskBlock other = pool_.try_allocate(bytes_.size());
  EXPECT_NO_THROW(pool_.write(other, bytes_.data(), bytes_.size()).wait());
}

TEST_F(DiskPoolFaultTest, AFailureIsThrownOnce) {
  rig_.queue.fail(IoKind::kWrite, 1, IoFault::kError);
  DiskTransfer transfer = write();
  EXPECT_THROW(transfer.wait(), DiskError);
  EXPECT_NO_THROW(transfer.wait());
}

TEST_F(DiskPoolFaultTest, AFailureNobodyWaitsForIsLogged) {
  rig_.queue.fail(IoKind::kWrite, 1, IoFault::kError);
  { const DiskTransfer transfer = write(); }
  EXPECT_THAT(rig_.messages, ElementsAre(StartsWith("Disk transfer failed unseen: Disk write")));
}

TEST_F(DiskPoolFaultTest, AFullDiskGivesNoBlockAndKeepsTheOthers) {
  const support::MountedFolder small("tmpfs", "size=2m");
  if (!small.mounted()) {
    GTEST_SKIP() << "this user may not mount";
  }
  disk::StoreFile file({.folder = small.path(), .margin_bytes = 0}, rig_.log);
  DiskPool pool(file, rig_.queue, rig_.budget, {.extent_bytes = 1_MiB});
  DiskBlock block = pool.try_allocate(bytes_.size());
  pool.write(block, bytes_.data(), bytes_.size()).wait();
  EXPECT_FALSE(pool.try_allocate(2_MiB));
  pool.read(block, target_.data(), target_.size()).wait();
  EXPECT_EQ(target_, bytes_);
}

}  // namespace
}  // namespace headwater
