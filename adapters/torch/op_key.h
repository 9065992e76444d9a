#pragma once

#include "headwater/trace/op_record.h"

#include <ATen/core/IListRef_inl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/SymInt.h>
#include <c10/util/FunctionRef.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace headwater::adapter {

/// Gathers the key of an operator: it names the operator on arguments of certain shapes and sizes.
/// Tensors count by their metadata. Fractions count only for operators without tensors, whose sizes
/// they may decide; optimizers change theirs from step to step. Arguments give the same one whether
/// they are boxed or not.
class OpKeyBuilder {
 public:
  explicit OpKeyBuilder(const c10::OperatorHandle& op);

  void add(const at::Tensor& tensor);
  void add(const c10::IValue& value);
  void add(const std::optional<at::Tensor>& tensor) {
    if (tensor) {
      add(*tensor);
    }
  }
  // The kinds of arguments that come most often do without a value that takes a list or a text of
  // its own from the heap.
  void add(std::int64_t value) { mix(static_cast<std::uint64_t>(value)); }
  void add(bool value) { mix(value ? kTrue : kFalse); }
  void add(const c10::SymInt& value);
  void add(std::string_view text) { mix(std::hash<std::string_view>{}(text)); }
  void add(c10::IntArrayRef values) { add_each(values); }
  void add(c10::SymIntArrayRef values) { add_each(values); }
  void add(const c10::OptionalArrayRef<std::int64_t>& values) {
    if (values) {
      add_each(*values);
    }
  }
  template <std::size_t kSize>
  void add(const std::array<bool, kSize>& values) {
    add_each(values);
  }
  template <class Value>
  void add(const std::optional<Value>& value) {
    if (value) {
      add(*value);
    }
  }
  void add(at::TensorList tensors) { add_each(tensors); }
  void add(const at::ITensorListRef& tensors) { add_each(tensors); }
  template <class Value>
  void add(const Value& value) {
    add(c10::IValue(value));
  }

  OpKey key() const { return OpKey(key_); }

 private:
  static constexpr std::uint64_t kTrue = 3;
  static constexpr std::uint64_t kFalse = 4;

  template <class List>
  void add_each(const List& values) {
    for (const auto& value : values) {
      add(value);
    }
  }
  void mix(std::uint64_t value);

  std::uint64_t key_;
  bool has_tensors_ = false;
};

/// The key of one call, worked out when it is first asked for: that takes as long as some
/// operators.
class OpKeyOnce {
 public:
  explicit OpKeyOnce(c10::function_ref<OpKey()> work_out) : work_out_(work_out) {}
  OpKey operator()() {
    if (!key_) {
      key_ = work_out_();
    }
    return *key_;
  }

 private:
  const c10::function_ref<OpKey()> work_out_;
  std::optional<OpKey> key_;
};

OpKey boxed_op_key(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);

template <class... Args>
OpKey op_key(const c10::OperatorHandle& op, const Args&... args) {
  OpKeyBuilder builder(op);
  (builder.add(args), ...);
  return builder.key();
}

}  // namespace headwater::adapter
