#pragma once

#include "headwater/memory/disk_block.h"

namespace headwater {

/// Whether a tensor's bytes are on disk.
///
///             stow begins             ends             recall begins
///   kNone ────────────────▶ kWriting ──────▶ kCurrent ──────────────▶ kReading
///     ▲──────── fails ──────────┘               ▲───── ends, fails ──────┘
///
/// When the bytes change, any state becomes kNone.
enum class DiskState : unsigned char { kNone, kWriting, kCurrent, kReading };

/// A tensor's bytes on disk, beside its host bytes or in place of them. A block is there exactly
/// when the state is not kNone.
struct DiskCopy {
  DiskState state = DiskState::kNone;
  bool wanted = false;  // recalled for a fetch to come: the host bytes go last
  DiskBlock block;
  DiskTransfer transfer;  // the last one; under way in kWriting and kReading
};

}  // namespace headwater
