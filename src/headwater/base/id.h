#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace headwater {

/// Integer that cannot be mixed up with one of another kind.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  explicit constexpr Id(std::uint64_t value) : value_(value) {}

  constexpr std::uint64_t value() const { return value_; }
  // NOLINTNEXTLINE(modernize-use-nullptr): a bug of clang-tidy's
  auto operator<=>(const Id&) const = default;

 private:
  std::uint64_t value_ = 0;
};

using TensorId = Id<struct TensorTag>;
using StepId = Id<struct StepTag>;

}  // namespace headwater

template <class Tag>
struct std::hash<headwater::Id<Tag>> {
  std::size_t operator()(headwater::Id<Tag> id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value());
  }
};
