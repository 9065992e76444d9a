#pragma once

#include <cstddef>
#include <cstdlib>
#include <random>

namespace headwater::support {

/// HEADWATER_SEED repeats one run that failed.
inline unsigned seed_of(unsigned number) {
  const char* chosen = std::getenv("HEADWATER_SEED");
  return chosen == nullptr ? number : static_cast<unsigned>(std::strtoul(chosen, nullptr, 10));
}

/// Draws random numbers from 0 to `most`.
class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  std::size_t roll(std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most)(random_);
  }

 private:
  std::mt19937 random_;
};

}  // namespace headwater::support
