#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace headwater::adapter {

/// How large the results of an operator can be.
enum class Growth : unsigned char {
  kNone,       // it makes none: its results are arguments
  kModest,     // a few times what it is given
  kBroadcast,  // what its tensors broadcast to
  kProduct,    // the rows of the last tensor but one by the columns of the last
  kByShape,    // often far more than it is given, as the gradient of a slice: its shape rule knows
  kUnknown,    // nobody has looked: many times what it is given
  kAnything,   // it resizes what it is given
};

Growth growth_of(const c10::OperatorHandle& op);

/// Gathers the most bytes that the results of an operator take, from the tensors it is given.
class ResultBound final {
 public:
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): merged_ is filled where it is needed
  explicit ResultBound(Growth growth) : growth_(growth) {}
  ResultBound(const ResultBound&) = delete;
  ResultBound& operator=(const ResultBound&) = delete;
  ~ResultBound() = default;

  /// Tensors are added in the order of the arguments.
  void add(const at::Tensor& tensor);
  void add(const c10::IValue& argument);

  /// Of the tensors themselves.
  std::size_t given() const { return given_; }
  /// Nothing where the tensors alone do not tell.
  std::optional<std::size_t> bytes() const;

 private:
  static constexpr std::size_t kModestTimes = 8;
  static constexpr std::size_t kManyTimes = 64;
  static constexpr std::size_t kAllThereIs = std::size_t{1} << 60;
  static constexpr std::size_t kMostDims = 16;  // nobody knows what comes of more
  static constexpr std::size_t kLargeItem = 8;  // what small types are promoted to

  void broadcast(c10::IntArrayRef sizes, std::size_t count);
  void merge(c10::IntArrayRef sizes);
  void multiply(const at::Tensor& tensor);

  Growth growth_;
  std::size_t given_ = 0;
  std::size_t item_ = kLargeItem;               // bytes of an element of the results
  std::size_t elements_ = 0;                    // of what the tensors so far broadcast to
  c10::IntArrayRef shape_;                      // of those with several elements, in the first
  std::array<std::int64_t, kMostDims> merged_;  // or here, once another has differed
  // of the last two tensors
  std::size_t rows_ = 0;
  std::size_t last_rows_ = 0;
  std::size_t last_row_bytes_ = 0;
};

}  // namespace headwater::adapter
