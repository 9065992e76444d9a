#include "op_key.h"

#include "tensor_walk.h"

#include <bit>
#include <functional>

namespace headwater::adapter {

OpKeyBuilder::OpKeyBuilder(const c10::OperatorHandle& op)
    : key_(reinterpret_cast<std::uintptr_t>(&op.schema())) {}

void OpKeyBuilder::add(const at::Tensor& tensor) {
  has_tensors_ = true;
  if (!tensor.defined()) {
    mix(1);
    return;
  }
  mix(static_cast<std::uint64_t>(tensor.scalar_type()));
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (impl.key_set().has_any(kSpecialLayouts) || impl.is_python_dispatch()) {
    return;
  }
  mix(static_cast<std::uint64_t>(tensor.dim()));
  for (const std::int64_t size : tensor.sizes()) {
    mix(static_cast<std::uint64_t>(size));
  }
  if (!tensor.is_contiguous()) {
    mix(2);
  }
}

void OpKeyBuilder::add(const c10::SymInt& value) {
  if (const std::optional<std::int64_t> known = value.maybe_as_int()) {
    add(*known);
  }
}

void OpKeyBuilder::add(const c10::IValue& value) {
  if (value.isTensor()) {
    add(value.toTensor());
  } else if (value.isInt()) {
    add(value.toInt());
  } else if (value.isDouble() && !has_tensors_) {
    mix(std::bit_cast<std::uint64_t>(value.toDouble()));
  } else if (value.isString()) {
    add(std::string_view(value.toStringRef()));
  } else if (value.isDevice()) {
    mix(std::hash<c10::Device>{}(value.toDevice()));
  } else if (value.isBool()) {
    add(value.toBool());
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      add(element);
    }
  }
}

void OpKeyBuilder::mix(std::uint64_t value) {
  key_ ^= value + 0x9e3779b97f4a7c15U + (key_ << 6) + (key_ >> 2);
  key_ *= 0xff51afd7ed558ccdU;
}

OpKey boxed_op_key(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  OpKeyBuilder builder(op);
  for (const c10::IValue& argument : arguments) {
    builder.add(argument);
  }
  return builder.key();
}

}  // namespace headwater::adapter
