#include "session_state.h"

#include <memory>
#include <utility>
#include <vector>

namespace headwater::adapter {
namespace {

/// Context of an alias: the hold, and the storage whose bytes it shows.
struct AliasContext {
  Hold hold;
  c10::Storage storage;
};

void free_alias(void* context) {
  delete static_cast<AliasContext*>(context);
}

}  // namespace

at::Tensor held_alias(const at::Tensor& tensor, const std::shared_ptr<SessionState>& session) {
  std::vector<Pin> pins = session->pin(tensor);
  if (pins.empty()) {
    return tensor;
  }
  const c10::Storage& source = tensor.storage();
  auto* context = new AliasContext{Hold(session, std::move(pins)), source};
  c10::DataPtr bytes(source.mutable_data(), context, &free_alias, source.device());
  c10::Storage storage(
      c10::Storage::use_byte_size_t(), source.nbytes(), std::move(bytes), nullptr, false);
  at::Tensor alias = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), tensor.key_set(), tensor.dtype());
  c10::TensorImpl* impl = alias.unsafeGetTensorImpl();
  impl->set_storage_offset(tensor.storage_offset());
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  alias.set_requires_grad(tensor.requires_grad());
  return alias;
}

}  // namespace headwater::adapter
