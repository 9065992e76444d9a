#include "headwater/memory/buffer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <utility>

namespace headwater {
namespace {

void count_return(void* owner) {
  ++*static_cast<int*>(owner);
}

class BufferTest : public testing::Test {
 protected:
  Buffer make() { return {bytes_.data(), bytes_.size(), &returns_, count_return}; }

  std::array<std::byte, 16> bytes_{};
  int returns_ = 0;
};

TEST_F(BufferTest, TellsItsOwnerOnceWhenDestroyed) {
  {
    const Buffer buffer = make();
    EXPECT_TRUE(buffer);
    EXPECT_EQ(buffer.data(), bytes_.data());
    EXPECT_EQ(buffer.bytes(), 16U);
  }
  EXPECT_EQ(returns_, 1);
}

TEST_F(BufferTest, MovingHandsTheBytesOver) {
  Buffer first = make();
  { const Buffer second = std::move(first); }
  EXPECT_EQ(returns_, 1);
}

TEST_F(BufferTest, ReleasedBytesAreTheCallersToReturn) {
  Buffer buffer = make();
  const Buffer::Deleter deleter = buffer.deleter();
  void* owner = buffer.release();
  EXPECT_FALSE(buffer);
  EXPECT_EQ(returns_, 0);
  deleter(owner);
  EXPECT_EQ(returns_, 1);
}

TEST_F(BufferTest, AnEmptyBufferHasNothingToReturn) {
  const Buffer buffer;
  EXPECT_FALSE(buffer);
  EXPECT_EQ(buffer.bytes(), 0U);
}

}  // namespace
}  // namespace headwater
