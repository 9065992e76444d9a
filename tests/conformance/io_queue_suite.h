#pragma once

#include "headwater/base/bytes.h"
#include "headwater/base/error.h"
#include "headwater/device/disk/aligned_bytes.h"
#include "headwater/device/disk/disk_error.h"
#include "headwater/device/disk/io_queue.h"
#include "headwater/device/disk/store_file.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <thread>
#include <unistd.h>
#include <vector>

namespace headwater::conformance {

using namespace literals;  // NOLINT(google-build-using-namespace)
using disk::IoRequest;
using disk::IoTicket;

/// What every IoQueue must do. An Engine is a struct with
///   static std::unique_ptr<disk::IoQueue> make(const disk::IoOptions&);
/// which is null where the machine lacks something: the suite then skips.
template <class Engine>
class IoQueueSuite : public testing::Test {
 protected:
  static constexpr std::size_t kPiece = 16_KiB;
  static constexpr std::size_t kNumPieces = 4;
  static constexpr std::size_t kBytes = 256_KiB;  // more pieces than fit the queue

  void SetUp() override {
    queue_ = Engine::make({.num_threads = 2, .num_pieces = kNumPieces, .piece_bytes = kPiece});
    if (queue_ == nullptr) {
      GTEST_SKIP() << "no such queue on this machine";
    }
    ASSERT_TRUE(file_.try_allocate({.offset = 0, .bytes = 8_MiB}));
  }
  void TearDown() override {
    if (queue_ != nullptr) {
      queue_->check_invariants();
    }
  }

  disk::AlignedBytes filled(unsigned seed) const {
    disk::AlignedBytes bytes(kBytes, file_.block_bytes());
    std::ranges::generate(bytes.first(kBytes), [n = seed]() mutable {
      n = n * 1664525U + 1013904223U;
      return static_cast<std::byte>(n >> 24U);
    });
    return bytes;
  }

  IoTicket write(std::size_t offset, const disk::AlignedBytes& bytes) {
    return queue_->submit(IoRequest::write(file_, offset, bytes.first(bytes.size())));
  }
  IoTicket read(std::size_t offset, const disk::AlignedBytes& bytes) {
    return queue_->submit(IoRequest::read(file_, offset, bytes.first(bytes.size())));
  }
  bool disk_holds(std::size_t offset, const disk::AlignedBytes& bytes) {
    const disk::AlignedBytes found(bytes.size(), file_.block_bytes());
    read(offset, found).wait();
    return std::ranges::equal(found.first(bytes.size()), bytes.first(bytes.size()));
  }

  support::TemporaryFolder folder_;
  Log log_{LogLevel::kOff};
  disk::StoreFile file_{{.folder = folder_.path(), .margin_bytes = 0}, log_};
  std::unique_ptr<disk::IoQueue> queue_;
};

TYPED_TEST_SUITE_P(IoQueueSuite);

TYPED_TEST_P(IoQueueSuite, SaysWhatItIs) {
  EXPECT_FALSE(this->queue_->name().empty());
}

TYPED_TEST_P(IoQueueSuite, BytesComeBackAsTheyWent) {
  const disk::AlignedBytes bytes = this->filled(1);
  this->write(0, bytes).wait();
  EXPECT_TRUE(this->disk_holds(0, bytes));
}

TYPED_TEST_P(IoQueueSuite, ARequestOfNoBytesEnds) {
  const IoTicket ticket = this->queue_->submit(IoRequest::read(this->file_, 0, {}));
  ticket.wait();
  EXPECT_TRUE(ticket.done());
}

TYPED_TEST_P(IoQueueSuite, ATicketIsDoneOnceItWasWaitedFor) {
  const disk::AlignedBytes bytes = this->filled(2);
  const IoTicket ticket = this->write(0, bytes);
  ticket.wait();
  EXPECT_TRUE(ticket.done());
}

TYPED_TEST_P(IoQueueSuite, RequestsAtDifferentOffsetsDoNotMix) {
  std::vector<disk::AlignedBytes> sources;
  std::vector<IoTicket> tickets;
  for (unsigned i = 0; i < 8; ++i) {
    sources.push_back(this->filled(i));
    tickets.push_back(this->write(i * this->kBytes, sources[i]));
  }
  for (unsigned i = 0; i < 8; ++i) {
    tickets[i].wait();
    EXPECT_TRUE(this->disk_holds(i * this->kBytes, sources[i]));
  }
}

TYPED_TEST_P(IoQueueSuite, ReadingBeyondTheEndIsATruncatedFile) {
  const disk::AlignedBytes bytes = this->filled(3);
  const IoTicket ticket = this->read(64_MiB, bytes);
  EXPECT_THROW(ticket.wait(), DiskTruncated);
  EXPECT_THROW(ticket.wait(), DiskTruncated);
}

TYPED_TEST_P(IoQueueSuite, AFileCutInTheMiddleOfARequestIsATruncatedFile) {
  const disk::AlignedBytes bytes = this->filled(4);
  this->write(0, bytes).wait();
  ASSERT_EQ(::ftruncate(this->file_.descriptor(), static_cast<off_t>(this->kBytes / 2)), 0);
  EXPECT_THROW(this->read(0, bytes).wait(), DiskTruncated);
}

TYPED_TEST_P(IoQueueSuite, OtherRequestsGoOnAfterAFailure) {
  const disk::AlignedBytes bytes = this->filled(5);
  const IoTicket failed = this->read(64_MiB, bytes);
  EXPECT_THROW(failed.wait(), DiskError);
  this->write(0, bytes).wait();
  EXPECT_TRUE(this->disk_holds(0, bytes));
}

TYPED_TEST_P(IoQueueSuite, RequestsThatAreNotAlignedAreRefused) {
  const disk::AlignedBytes bytes = this->filled(6);
  const auto whole = bytes.first(this->kBytes);
  EXPECT_THROW((void)this->queue_->submit(IoRequest::read(this->file_, 1, whole)), InternalError);
  EXPECT_THROW((void)this->queue_->submit(IoRequest::read(this->file_, 0, whole.first(100))),
               InternalError);
}

TYPED_TEST_P(IoQueueSuite, TheDestructorEndsWhatWasSubmitted) {
  const disk::AlignedBytes bytes = this->filled(7);
  const IoTicket ticket = this->write(0, bytes);
  this->queue_.reset();
  EXPECT_TRUE(ticket.done());
  EXPECT_NO_THROW(ticket.wait());
}

TYPED_TEST_P(IoQueueSuite, ARequestOutlivesTheThreadThatSubmittedIt) {
  const disk::AlignedBytes bytes = this->filled(8);
  for (std::size_t i = 0; i < 8; ++i) {
    IoTicket ticket;
    std::jthread([&] { ticket = this->write(i * this->kBytes, bytes); }).join();
    ticket.wait();
    EXPECT_TRUE(this->disk_holds(i * this->kBytes, bytes));
  }
}

TYPED_TEST_P(IoQueueSuite, ThreadsShareTheQueue) {
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 4; ++thread) {
      threads.emplace_back([this, thread] {
        for (unsigned i = 0; i < 8; ++i) {
          const disk::AlignedBytes bytes = this->filled(8 * thread + i);
          this->write(thread * this->kBytes, bytes).wait();
          this->queue_->check_invariants();
          EXPECT_TRUE(this->disk_holds(thread * this->kBytes, bytes));
        }
      });
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(IoQueueSuite,
                            SaysWhatItIs,
                            BytesComeBackAsTheyWent,
                            ARequestOfNoBytesEnds,
                            ATicketIsDoneOnceItWasWaitedFor,
                            RequestsAtDifferentOffsetsDoNotMix,
                            ReadingBeyondTheEndIsATruncatedFile,
                            AFileCutInTheMiddleOfARequestIsATruncatedFile,
                            OtherRequestsGoOnAfterAFailure,
                            RequestsThatAreNotAlignedAreRefused,
                            TheDestructorEndsWhatWasSubmitted,
                            ARequestOutlivesTheThreadThatSubmittedIt,
                            ThreadsShareTheQueue);

}  // namespace headwater::conformance
