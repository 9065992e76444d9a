#include "tensor_walk.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/quantized/QTensorImpl.h>
#include <ATen/quantized/Quantizer.h>

namespace headwater::adapter {
namespace {

void visit_part(const at::Tensor& part, VisitStorage visit) {
  for_each_storage(part, [&visit](c10::StorageImpl& storage, Adoption) {
    visit(storage, Adoption::kForbidden);
  });
}

void visit_quantizer(const at::Tensor& tensor, VisitStorage visit) {
  const auto& impl = static_cast<const at::QTensorImpl&>(*tensor.unsafeGetTensorImpl());
  const at::QuantizerPtr quantizer = const_cast<at::QTensorImpl&>(impl).quantizer();
  if (const auto* channels = dynamic_cast<at::PerChannelAffineQuantizer*>(quantizer.get())) {
    visit_part(channels->scales(), visit);
    visit_part(channels->zero_points(), visit);
  }
}

}  // namespace

void visit_special_layout(const at::Tensor& tensor, VisitStorage visit) {
  const c10::DispatchKeySet keys = tensor.key_set();
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (keys.has(c10::DispatchKey::Sparse)) {
    const auto& sparse = static_cast<const at::SparseTensorImpl&>(*impl);
    visit_part(sparse.indices(), visit);
    visit_part(sparse.values(), visit);
  } else if (keys.has(c10::DispatchKey::SparseCsr)) {
    const auto& compressed = static_cast<const at::SparseCsrTensorImpl&>(*impl);
    visit_part(compressed.compressed_indices(), visit);
    visit_part(compressed.plain_indices(), visit);
    visit_part(compressed.values(), visit);
  } else if (keys.has(c10::DispatchKey::NestedTensor)) {
    // Nested tensors written in Python are subclasses; their parts arrive as operators' arguments.
    if (const auto* nested = dynamic_cast<const at::native::NestedTensorImpl*>(impl)) {
      if (c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl()) {
        visit(*storage, Adoption::kForbidden);
      }
      visit_part(nested->get_nested_sizes(), visit);
      visit_part(nested->get_nested_strides(), visit);
      visit_part(nested->get_storage_offsets(), visit);
    }
  } else if (c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl()) {
    visit(*storage, Adoption::kForbidden);
    if (keys.has(c10::DispatchKey::Quantized)) {
      visit_quantizer(tensor, visit);
    }
  }
}

}  // namespace headwater::adapter
