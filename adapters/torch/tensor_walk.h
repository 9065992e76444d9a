#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/FunctionRef.h>

namespace headwater::adapter {

/// Whether a storage found beneath a tensor may be adopted through it. The parts of sparse, nested
/// and quantized tensors are read by PyTorch without passing an operator, so they are pinned where
/// they are managed already but never taken in.
enum class Adoption : unsigned char { kAllowed, kForbidden };

using VisitStorage = c10::function_ref<void(c10::StorageImpl&, Adoption)>;

/// Visits the storages of a tensor that is not an ordinary strided one.
void visit_special_layout(const at::Tensor& tensor, VisitStorage visit);

inline constexpr c10::DispatchKeySet kSpecialLayouts =
    c10::DispatchKeySet(c10::DispatchKey::Sparse) |
    c10::DispatchKeySet(c10::DispatchKey::SparseCsr) |
    c10::DispatchKeySet(c10::DispatchKey::Quantized) |
    c10::DispatchKeySet(c10::DispatchKey::NestedTensor) |
    c10::DispatchKeySet(c10::DispatchKey::MkldnnCPU);

/// Bytes the elements of an ordinary tensor would take on their own; zero for others.
inline std::size_t bytes_shown(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.key_set().has_any(kSpecialLayouts)) {
    return 0;
  }
  return static_cast<std::size_t>(tensor.numel()) * tensor.itemsize();
}

template <class Visit>
void for_each_storage(const at::Tensor& tensor, Visit&& visit) {
  if (!tensor.defined()) {
    return;
  }
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (impl.key_set().has_any(kSpecialLayouts)) {
    visit_special_layout(tensor, visit);
  } else if (c10::StorageImpl* storage = impl.unsafe_storage().unsafeGetStorageImpl()) {
    visit(*storage, Adoption::kAllowed);
  }
}

/// Visits the storages behind an argument or a result, whatever its shape.
template <class Visit>
void for_each_storage(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    for_each_storage(value.toTensor(), visit);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      for_each_storage(element, visit);
    }
  } else if (value.isStorage()) {
    if (c10::StorageImpl* storage = value.toStorage().unsafeGetStorageImpl()) {
      visit(*storage, Adoption::kAllowed);
    }
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) {
      for_each_storage(element, visit);
    }
  }
}

}  // namespace headwater::adapter
