#include "support/faulty_io_queue.h"

#include "headwater/base/bytes.h"
#include "headwater/device/disk/disk_error.h"
#include "headwater/device/disk/store_file.h"
#include "headwater/device/disk/thread_queue.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace headwater::support {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using disk::IoKind;
using disk::IoRequest;

class FaultyIoQueueTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ranges::fill(source_.first(kBytes), std::byte{1});
    write().wait();
  }

  disk::IoTicket write() {
    return queue_.submit(IoRequest::write(file_, 0, source_.first(kBytes)));
  }
  disk::IoTicket read() {
    std::ranges::fill(target_.first(kBytes), std::byte{0});
    return queue_.submit(IoRequest::read(file_, 0, target_.first(kBytes)));
  }
  bool read_is_right() const {
    return std::ranges::equal(target_.first(kBytes), source_.first(kBytes));
  }

  static constexpr std::size_t kBytes = 64_KiB;
  TemporaryFolder folder_;
  Log log_{LogLevel::kOff};
  disk::StoreFile file_{{.folder = folder_.path(), .margin_bytes = 0}, log_};
  disk::ThreadQueue inner_{{.num_threads = 1}};
  FaultyIoQueue queue_{inner_};
  disk::AlignedBytes source_{kBytes, kBytes};
  disk::AlignedBytes target_{kBytes, kBytes};
};

TEST_F(FaultyIoQueueTest, OnlyTheChosenRequestFails) {
  queue_.fail(IoKind::kRead, 2, IoFault::kError);
  EXPECT_NO_THROW(read().wait());
  EXPECT_NO_THROW(write().wait());
  EXPECT_THROW(read().wait(), DiskError);
  EXPECT_FALSE(read_is_right());
  EXPECT_NO_THROW(read().wait());
  EXPECT_TRUE(read_is_right());
}

TEST_F(FaultyIoQueueTest, FaultsHaveTheErrorsOfRealOnes) {
  queue_.fail(IoKind::kWrite, 1, IoFault::kNoSpace);
  EXPECT_THROW(write().wait(), DiskFull);
  queue_.fail(IoKind::kRead, 1, IoFault::kTruncated);
  EXPECT_THROW(read().wait(), DiskTruncated);
}

TEST_F(FaultyIoQueueTest, ACorruptWriteChangesTheDiskAndNotTheSource) {
  queue_.fail(IoKind::kWrite, 1, IoFault::kCorrupt);
  write().wait();
  read().wait();
  EXPECT_FALSE(read_is_right());
  EXPECT_EQ(source_.first(1).front(), std::byte{1});
}

TEST_F(FaultyIoQueueTest, ACorruptReadFindsTheDiskChanged) {
  queue_.fail(IoKind::kRead, 1, IoFault::kCorrupt);
  read().wait();
  EXPECT_FALSE(read_is_right());
}

}  // namespace
}  // namespace headwater::support
