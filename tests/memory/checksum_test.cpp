#include "headwater/memory/checksum.h"

#include "headwater/base/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <set>
#include <vector>

namespace headwater {
namespace {

using Bytes = std::vector<std::byte>;

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  Checksum sum;
  sum.add(bytes);
  return sum.value();
}

Bytes random_bytes(std::size_t size) {
  std::mt19937 random(1);
  Bytes bytes(size);
  std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random()); });
  return bytes;
}

TEST(ChecksumTest, EqualBytesHaveEqualSumsAtAnyAddress) {
  const Bytes bytes = random_bytes(1000);
  Bytes shifted(1003);
  std::ranges::copy(bytes, shifted.begin() + 3);
  EXPECT_EQ(checksum_of(bytes), checksum_of(std::span(shifted).subspan(3)));
}

TEST(ChecksumTest, PartsAddUpToTheWhole) {
  const Bytes bytes = random_bytes(1000);
  Checksum sum;
  sum.add(std::span(bytes).first(640));
  sum.add(std::span(bytes).subspan(640, 64));
  sum.add(std::span(bytes).subspan(704));
  EXPECT_EQ(sum.value(), checksum_of(bytes));
}

TEST(ChecksumTest, NothingFollowsAPartThatIsNoMultipleOfAStripe) {
  const Bytes bytes = random_bytes(100);
  Checksum sum;
  sum.add(bytes);
  EXPECT_THROW(sum.add(bytes), InternalError);
}

TEST(ChecksumTest, EveryBitCounts) {
  Bytes bytes = random_bytes(200);
  std::set<std::uint64_t> sums{checksum_of(bytes)};
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const std::byte mask{static_cast<unsigned char>(1U << bit % 8)};
    bytes[bit / 8] ^= mask;
    sums.insert(checksum_of(bytes));
    bytes[bit / 8] ^= mask;
  }
  EXPECT_EQ(sums.size(), 1 + 8 * bytes.size());
}

TEST(ChecksumTest, NoTwoFlippedBitsAreTakenForAnotherTwo) {
  Bytes bytes(256);
  std::set<std::uint64_t> sums;
  for (std::size_t first = 0; first < 64; ++first) {
    for (std::size_t second = 0; second < 64; ++second) {
      Bytes changed = bytes;
      changed[first / 8] ^= std::byte{static_cast<unsigned char>(1U << first % 8)};
      changed[64 + second / 8] ^= std::byte{static_cast<unsigned char>(1U << second % 8)};
      sums.insert(checksum_of(changed));
    }
  }
  EXPECT_EQ(sums.size(), 64U * 64U);
}

TEST(ChecksumTest, TheNumberOfZerosCounts) {
  const Bytes zeros(300);
  std::set<std::uint64_t> sums;
  for (std::size_t size = 0; size <= zeros.size(); ++size) {
    sums.insert(checksum_of(std::span(zeros).first(size)));
  }
  EXPECT_EQ(sums.size(), zeros.size() + 1);
}

TEST(ChecksumTest, TheOrderOfWordsStripesAndBlocksCounts) {
  const Bytes bytes = random_bytes(16384);
  for (const std::size_t unit : {8U, 64U, 4096U}) {
    Bytes swapped = bytes;
    std::swap_ranges(swapped.begin(),
                     swapped.begin() + static_cast<std::ptrdiff_t>(unit),
                     swapped.begin() + static_cast<std::ptrdiff_t>(2 * unit));
    EXPECT_NE(checksum_of(swapped), checksum_of(bytes)) << unit;
  }
}

TEST(ChecksumTest, ABlockOfZerosInPlaceOfAnotherIsSeen) {
  Bytes bytes = random_bytes(16384);
  const std::uint64_t before = checksum_of(bytes);
  std::fill_n(bytes.begin() + 4096, 4096, std::byte{0});
  EXPECT_NE(checksum_of(bytes), before);
}

TEST(ChecksumTest, AChangeOfOneBitChangesAboutHalfOfTheSum) {
  Bytes bytes = random_bytes(4096);
  const std::uint64_t before = checksum_of(bytes);
  int num_changed = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{128};
    num_changed += std::popcount(before ^ checksum_of(bytes));
    bytes[i] ^= std::byte{128};
  }
  EXPECT_NEAR(num_changed / 4096.0, 32.0, 1.0);
}

}  // namespace
}  // namespace headwater
