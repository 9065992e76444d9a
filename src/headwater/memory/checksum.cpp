#include "headwater/memory/checksum.h"

#include "headwater/base/check.h"

#include <cstring>

namespace headwater {
namespace {

// Odd and without pattern: the fraction of the golden ratio and that of the square root of two.
constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
constexpr std::uint64_t kRootTwo = 0x6A09E667F3BCC909;
constexpr int kHalf = 32;

// A product carries changes to higher bits only; the shift brings them down for the second one.
std::uint64_t mix(std::uint64_t value) {
  const std::uint64_t product = value * kGolden;
  return (product ^ (product >> kHalf)) * kRootTwo;
}

}  // namespace

Checksum::Checksum() {
  for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
    lanes_[lane] = mix(lane + 1);
  }
}

void Checksum::add(std::span<const std::byte> bytes) {
  HEADWATER_CHECK_EQ(num_bytes_ % kStripe, 0U);
  num_bytes_ += bytes.size();
  Lanes lanes = lanes_;  // a copy stays in registers
  for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) {
    add_stripe(lanes, bytes.data());
  }
  if (!bytes.empty()) {
    // Padding is told apart from zeros by the count of bytes.
    std::array<std::byte, kStripe> last{};
    std::memcpy(last.data(), bytes.data(), bytes.size());
    add_stripe(lanes, last.data());
  }
  lanes_ = lanes;
}

std::uint64_t Checksum::value() const {
  std::uint64_t sum = mix(num_bytes_ + kGolden);
  for (const std::uint64_t lane : lanes_) {
    sum = mix(sum ^ lane);
  }
  return sum ^ (sum >> kHalf);
}

void Checksum::add_stripe(Lanes& lanes, const std::byte* stripe) {
  for (std::size_t lane = 0; lane < kNumLanes; ++lane) {
    std::uint64_t word = 0;
    std::memcpy(&word, stripe + lane * sizeof(word), sizeof(word));
    lanes[lane] = mix(lanes[lane] ^ word);
  }
}

}  // namespace headwater
