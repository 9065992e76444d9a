#include "headwater/device/disk/io_queue.h"

#include "headwater/device/disk/uring_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headwater::disk {
namespace {

class IoQueueTest : public testing::Test {
 protected:
  std::vector<std::string> messages_;
  Log log_{LogLevel::kInfo,
           [this](LogLevel, std::string_view text) { messages_.emplace_back(text); }};
};

TEST_F(IoQueueTest, ThreadsAreThereWhenAskedFor) {
  EXPECT_EQ(make_io_queue({.engine = IoEngine::kThreads}, log_)->name(), "threads");
  EXPECT_TRUE(messages_.empty());
}

TEST_F(IoQueueTest, UringIsTheDefaultWhereTheMachineHasIt) {
  const bool has_uring = try_make_uring_queue({}) != nullptr;
  EXPECT_EQ(make_io_queue({}, log_)->name(), has_uring ? "io_uring" : "threads");
  EXPECT_EQ(messages_.size(), has_uring ? 0U : 1U);
}

TEST_F(IoQueueTest, ARingTheKernelRefusesIsReplacedByThreads) {
  const std::size_t more_than_the_kernel_takes = std::size_t{1} << 20;
  const auto queue = make_io_queue({.num_pieces = more_than_the_kernel_takes}, log_);
  EXPECT_EQ(queue->name(), "threads");
  EXPECT_EQ(messages_.size(), 1U);
}

TEST_F(IoQueueTest, TheEmptyTicketIsLongPast) {
  const IoTicket ticket;
  EXPECT_TRUE(ticket.done());
  EXPECT_NO_THROW(ticket.wait());
}

}  // namespace
}  // namespace headwater::disk
