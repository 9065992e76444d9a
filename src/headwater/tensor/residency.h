#pragma once

#include <string_view>

namespace headwater {

/// Where the current bytes of a tensor are. "Host" stands for whichever lower tier holds the copy;
/// DiskState tells of the disk.
///
///              write-back begins        write-back ends            drop
///   kDevice ───────────────────▶ kWritingBack ──────▶ kBoth ───────────────▶ kHost
///      ▲  ▲─────────────────────────┘ fails, write  ▲  │                     │  ▲
///      └──────────── write ────────────────────┼──┘   fetch ends             ▼  │ fails
///                                              └───────────────────────── kFetching
///
/// Offload is a write-back followed by a drop; of a tensor that was only read since its fetch it
/// is the drop alone, which moves no bytes. A copy below that others need the room of is forgotten:
/// kBoth becomes kDevice. Bytes that operators can make again are given up without a copy: kDevice
/// becomes kGivenUp, until they are replayed.
enum class Residency : unsigned char {
  kDevice,
  kWritingBack,
  kBoth,
  kHost,
  kFetching,
  kGivenUp,
  kReleased,
};

enum class ResidencyEvent : unsigned char {
  kWriteBackBegins,
  kWriteBackEnds,
  kWriteBackFails,
  kDrop,
  kFetchBegins,
  kFetchEnds,
  kFetchFails,
  kWrite,
  kForget,
  kGiveUp,
  kReplay,
  kRelease,
};

/// The state after an event; throws InternalError where the table has no such transition.
Residency next_residency(Residency state, ResidencyEvent event);

/// Whether device bytes may be read in this state.
constexpr bool on_device(Residency state) {
  return state == Residency::kDevice || state == Residency::kWritingBack ||
         state == Residency::kBoth;
}

std::string_view residency_name(Residency state);
std::string_view event_name(ResidencyEvent event);

}  // namespace headwater
