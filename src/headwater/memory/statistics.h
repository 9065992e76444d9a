#pragma once

#include <cstdint>

namespace headwater {

/// Counts since the start; subtract an earlier reading to get those of an interval.
struct Statistics {
  std::uint64_t bytes_offloaded = 0;
  std::uint64_t bytes_fetched = 0;
  std::uint64_t num_offloads = 0;
  std::uint64_t num_fetches = 0;
  std::uint64_t num_clean_drops = 0;        // device copies given up without a move
  std::uint64_t num_offloads_ahead = 0;     // of the offloads, those begun before room was short
  std::uint64_t num_fetches_ahead = 0;      // of the fetches, those begun before anybody asked
  std::uint64_t num_fetches_abandoned = 0;  // of those, the ones nobody used
  std::uint64_t bytes_stowed = 0;           // written to disk
  std::uint64_t bytes_recalled = 0;         // read back from it
  std::uint64_t num_stows = 0;
  std::uint64_t num_recalls = 0;
  std::uint64_t num_recalls_ahead = 0;  // of those, begun before anybody asked
  std::uint64_t num_given_up = 0;       // tensors whose bytes are nowhere until they are replayed
  std::uint64_t num_replays = 0;        // tensors whose bytes operators have made again
  std::uint64_t bytes_replayed = 0;
  std::uint64_t num_inherited = 0;  // tensors whose device bytes an operator's result took
  std::uint64_t stall_ns = 0;       // time the caller waited for moves

  bool operator==(const Statistics&) const = default;
};

constexpr Statistics operator-(const Statistics& later, const Statistics& earlier) {
  return {
      .bytes_offloaded = later.bytes_offloaded - earlier.bytes_offloaded,
      .bytes_fetched = later.bytes_fetched - earlier.bytes_fetched,
      .num_offloads = later.num_offloads - earlier.num_offloads,
      .num_fetches = later.num_fetches - earlier.num_fetches,
      .num_clean_drops = later.num_clean_drops - earlier.num_clean_drops,
      .num_offloads_ahead = later.num_offloads_ahead - earlier.num_offloads_ahead,
      .num_fetches_ahead = later.num_fetches_ahead - earlier.num_fetches_ahead,
      .num_fetches_abandoned = later.num_fetches_abandoned - earlier.num_fetches_abandoned,
      .bytes_stowed = later.bytes_stowed - earlier.bytes_stowed,
      .bytes_recalled = later.bytes_recalled - earlier.bytes_recalled,
      .num_stows = later.num_stows - earlier.num_stows,
      .num_recalls = later.num_recalls - earlier.num_recalls,
      .num_recalls_ahead = later.num_recalls_ahead - earlier.num_recalls_ahead,
      .num_given_up = later.num_given_up - earlier.num_given_up,
      .num_replays = later.num_replays - earlier.num_replays,
      .bytes_replayed = later.bytes_replayed - earlier.bytes_replayed,
      .num_inherited = later.num_inherited - earlier.num_inherited,
      .stall_ns = later.stall_ns - earlier.stall_ns,
  };
}

}  // namespace headwater
