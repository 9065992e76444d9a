#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace headwater {

/// 64-bit sum over bytes that tells apart what was written from what came back. Not for secrets.
///
/// Eight lanes take a word each of every 64-byte stripe. A step of a lane is a bijection of its
/// state and of the word, so a change confined to one word changes its lane for certain; other
/// faults of a disk are missed with a chance near 2^-64. Depends on the machine's byte order.
class Checksum {
 public:
  static constexpr std::size_t kStripe = 64;

  Checksum();

  /// REQUIRES: the parts added before were multiples of kStripe.
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  static constexpr std::size_t kNumLanes = 8;
  using Lanes = std::array<std::uint64_t, kNumLanes>;

  static void add_stripe(Lanes& lanes, const std::byte* stripe);

  Lanes lanes_{};
  std::uint64_t num_bytes_ = 0;
};

}  // namespace headwater
