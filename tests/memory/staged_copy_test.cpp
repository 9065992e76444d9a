#include "headwater/memory/staged_copy.h"

#include "headwater/base/bytes.h"
#include "headwater/device/disk/disk_error.h"
#include "support/disk_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using disk::IoKind;
using support::IoFault;

class StagedCopyTest : public testing::TestWithParam<disk::Access> {
 protected:
  void SetUp() override { ASSERT_TRUE(rig_.file.try_allocate({.offset = 0, .bytes = 4_MiB})); }

  // Bytes at an address that is a multiple of `alignment` and of nothing larger.
  std::span<std::byte> memory_at(std::size_t alignment, std::size_t size) {
    return memory_.first(memory_.size()).subspan(alignment, size);
  }

  // Writes `size` bytes from one address and reads them to another.
  void expect_round_trip(std::size_t alignment, std::size_t size) {
    const std::vector<std::byte> bytes =
        support::random_bytes(size, static_cast<unsigned>(size + alignment));
    std::ranges::copy(bytes, memory_at(alignment, size).begin());
    const std::uint64_t written = copy_.write(8_KiB, memory_at(alignment, size));
    std::ranges::fill(memory_at(alignment, size), std::byte{0});
    EXPECT_EQ(copy_.read(8_KiB, memory_at(alignment, size)), written);
    EXPECT_TRUE(std::ranges::equal(memory_at(alignment, size), bytes)) << alignment << " " << size;
  }

  support::DiskRig rig_{{.access = GetParam()}};
  StagedCopy copy_{rig_.file, rig_.queue, {.piece_bytes = 64_KiB, .num_slots = 3}};
  disk::AlignedBytes memory_{2_MiB, 64_KiB};
};

TEST_P(StagedCopyTest, BytesOfAnySizeComeBackAsTheyWent) {
  for (const std::size_t size : {0U, 1U, 63U, 4095U, 4096U, 4097U, 65536U, 300'000U, 1'000'001U}) {
    expect_round_trip(64, size);
  }
}

TEST_P(StagedCopyTest, BytesAtAnyAddressComeBackAsTheyWent) {
  for (const std::size_t alignment : {1U, 8U, 64U, 512U, 4096U, 65536U}) {
    expect_round_trip(alignment, 200'000);
  }
}

TEST_P(StagedCopyTest, BytesNextToTheTargetStayAsTheyAre) {
  (void)copy_.write(0, memory_at(64, 5000));
  std::ranges::fill(memory_.first(memory_.size()), std::byte{7});
  (void)copy_.read(0, memory_at(64, 5000));
  EXPECT_EQ(memory_at(64 + 5000, 1).front(), std::byte{7});
  EXPECT_EQ(memory_at(63, 1).front(), std::byte{7});
}

TEST_P(StagedCopyTest, TheChecksumIsThatOfTheBytes) {
  const std::vector<std::byte> bytes = support::random_bytes(123'457, 1);
  Checksum sum;
  sum.add(bytes);
  EXPECT_EQ(copy_.write(0, bytes), sum.value());
}

TEST_P(StagedCopyTest, ACopyCanBeUsedAgainAfterAFailure) {
  for (const IoKind kind : {IoKind::kRead, IoKind::kWrite}) {
    rig_.queue.fail(kind, 2, IoFault::kError);
    EXPECT_THROW(expect_round_trip(64, 500'000), DiskError);
    expect_round_trip(64, 500'000);
  }
}

INSTANTIATE_TEST_SUITE_P(Accesses,
                         StagedCopyTest,
                         testing::Values(disk::Access::kDirect, disk::Access::kBuffered));

}  // namespace
}  // namespace headwater
