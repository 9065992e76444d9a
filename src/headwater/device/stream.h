#pragma once

#include <cstdint>

namespace headwater {

/// Non-owning name of a queue of work on a device. Work on one stream runs in the order it was
/// enqueued; between streams only events order it.
class StreamRef {
 public:
  explicit constexpr StreamRef(std::uintptr_t native) : native_(native) {}

  /// The backend's own handle: a CUstream for CUDA, a queue number for the others.
  constexpr std::uintptr_t native() const { return native_; }
  bool operator==(const StreamRef&) const = default;

 private:
  std::uintptr_t native_;
};

/// The queue that needs no creation: CUDA's default stream; on the host device the calling thread
/// itself, where every call has finished when it returns.
inline constexpr StreamRef kDefaultStream{0};

}  // namespace headwater
