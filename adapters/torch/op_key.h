#pragma once

#include "headwater/trace/op_record.h"

#include <ATen/core/IListRef_inl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/util/FunctionRef.h>

#include <cstdint>
#include <optional>
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
  void add(at::TensorList tensors) { add_each(tensors); }
  void add(const at::ITensorListRef& tensors) { add_each(tensors); }
  template <class Value>
  void add(const Value& value) {
    add(c10::IValue(value));
  }

  OpKey key() const { return OpKey(key_); }

 private:
  template <class List>
  void add_each(const List& tensors) {
    for (const at::Tensor& tensor : tensors) {
      add(tensor);
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
