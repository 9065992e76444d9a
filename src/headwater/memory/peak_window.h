#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace headwater {

/// The most of a number over the step that runs and the last few before it. Thread-compatible.
class PeakWindow {
 public:
  static constexpr std::size_t kSteps = 16;

  void note(std::size_t value) { peaks_[current_] = std::max(peaks_[current_], value); }
  /// The next step begins with `value`.
  void end_step(std::size_t value) {
    current_ = (current_ + 1) % kSteps;
    peaks_[current_] = value;
  }
  std::size_t most() const { return *std::max_element(peaks_.begin(), peaks_.end()); }

 private:
  std::array<std::size_t, kSteps> peaks_{};
  std::size_t current_ = 0;
};

}  // namespace headwater
