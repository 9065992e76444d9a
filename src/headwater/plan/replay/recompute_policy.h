#pragma once

namespace headwater {

/// Whether plans may have operators run again instead of copying what they have made.
enum class RecomputePolicy : unsigned char { kOff, kAuto };

}  // namespace headwater
