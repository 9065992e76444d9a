#include "result_bound.h"

#include "tensor_walk.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <set>
#include <string>

namespace headwater::adapter {
namespace {

/// Operators whose results are about as large as what they are given.
const std::set<std::string>& modest_operators() {
  static const std::set<std::string> kNames{
      "aten::sum",
      "aten::mean",
      "aten::amax",
      "aten::argmax",
      "aten::cumsum",
      "aten::gather",
      "aten::scatter_add",
      "aten::cat",
      "aten::stack",
      "aten::unsafe_split",
      "aten::flip",
      "aten::tril",
      "aten::triu",
      "aten::_unsafe_view",
      "aten::_local_scalar_dense",
      "aten::leaky_relu_backward",
      "aten::_softmax",
      "aten::_softmax_backward_data",
      "aten::_log_softmax",
      "aten::_log_softmax_backward_data",
      "aten::native_dropout",
      "aten::native_layer_norm",
      "aten::native_layer_norm_backward",
      "aten::native_group_norm",
      "aten::native_group_norm_backward",
      "aten::native_batch_norm",
      "aten::native_batch_norm_backward",
      "aten::cudnn_batch_norm",
      "aten::cudnn_batch_norm_backward",
      "aten::_scaled_dot_product_flash_attention",
      "aten::_scaled_dot_product_flash_attention_backward",
      "aten::_scaled_dot_product_cudnn_attention",
      "aten::_scaled_dot_product_cudnn_attention_backward",
      "aten::_scaled_dot_product_efficient_attention",
      "aten::_scaled_dot_product_efficient_attention_backward",
      "aten::_scaled_dot_product_flash_attention_for_cpu",
      "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
      "aten::_thnn_fused_lstm_cell",
      "aten::_thnn_fused_lstm_cell_backward_impl",
      "aten::nll_loss_forward",
      "aten::nll_loss_backward",
      "aten::max_pool2d_with_indices",
      "aten::max_pool2d_with_indices_backward",
      "aten::_adaptive_avg_pool2d_backward",
      "aten::avg_pool2d",
      "aten::avg_pool2d_backward",
  };
  return kNames;
}

/// Operators whose numbers or indices decide how large their results are.
const std::set<std::string>& operators_by_shape() {
  static const std::set<std::string> kNames{
      "aten::embedding",
      "aten::embedding_dense_backward",
      "aten::index",
      "aten::index_select",
      "aten::slice_backward",
      "aten::select_backward",
      "aten::diagonal_backward",
      "aten::unfold_backward",
      "aten::_cdist_forward",
      "aten::max_unpool2d",
      "aten::max_unpool3d",
      "aten::repeat",
      "aten::constant_pad_nd",
      "aten::_adaptive_avg_pool2d",
  };
  return kNames;
}

std::size_t unsigned_product(c10::IntArrayRef sizes) {
  return static_cast<std::size_t>(c10::multiply_integers(sizes));
}

/// For so few numbers a loop takes less than the call that comparing arrays is compiled to.
bool same(c10::IntArrayRef a, c10::IntArrayRef b) {
  bool equal = a.size() == b.size();
  for (std::size_t i = 0; equal && i < a.size(); ++i) {
    equal = a[i] == b[i];
  }
  return equal;
}

}  // namespace

Growth growth_of(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string& name = schema.name();
  const auto is_argument = [](const c10::Argument& result) {
    return result.alias_info() != nullptr;
  };
  if (name == "aten::resize_" || name == "aten::resize_as_") {
    return Growth::kAnything;
  }
  const auto is_out = [](const c10::Argument& argument) { return argument.is_out(); };
  const bool resizes = std::any_of(schema.arguments().begin(), schema.arguments().end(), is_out);
  if (!resizes && std::all_of(schema.returns().begin(), schema.returns().end(), is_argument)) {
    return Growth::kNone;
  }
  const bool elementwise = op.hasTag(at::Tag::pointwise) || name == "aten::_to_copy" ||
                           name == "aten::mse_loss" || name == "aten::mse_loss_backward";
  if (elementwise && schema.returns().size() == 1) {
    return Growth::kBroadcast;
  }
  if (resizes) {  // to what it would make otherwise
    return Growth::kUnknown;
  }
  if (name == "aten::mm" || name == "aten::bmm" || name == "aten::addmm" ||
      name == "aten::baddbmm") {
    return Growth::kProduct;
  }
  if (modest_operators().contains(name) || name.starts_with("aten::_foreach_")) {
    return Growth::kModest;
  }
  const bool by_shape = operators_by_shape().contains(name) || name.starts_with("aten::upsample_");
  return by_shape ? Growth::kByShape : Growth::kUnknown;
}

void ResultBound::add(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (!tensor.defined() || impl.key_set().has_any(kSpecialLayouts)) {
    return;  // those have no sizes to speak of
  }
  const auto count = static_cast<std::size_t>(impl.numel());
  const std::size_t item = impl.itemsize();
  given_ += count * item;
  if (growth_ == Growth::kBroadcast) {
    item_ = std::max(item_, 2 * item);  // a complex scalar makes them twice as wide
    if (count > 1) {
      broadcast(impl.sizes(), count);
    } else {
      elements_ = std::max(elements_, count);
    }
  } else if (growth_ == Growth::kProduct) {
    multiply(tensor);
  }
}

void ResultBound::add(const c10::IValue& argument) {
  if (argument.isTensor()) {
    add(argument.toTensor());
  } else if (argument.isList()) {
    for (const c10::IValue& element : argument.toListRef()) {
      add(element);
    }
  }
}

void ResultBound::broadcast(c10::IntArrayRef sizes, std::size_t count) {
  if (shape_.empty()) {
    shape_ = sizes;
    elements_ = count;
  } else if (!same(sizes, shape_)) {
    merge(sizes);
  }
}

void ResultBound::merge(c10::IntArrayRef sizes) {
  const std::size_t dims = std::max(shape_.size(), sizes.size());
  if (dims > kMostDims) {
    growth_ = Growth::kAnything;
    return;
  }
  // From the last dimension to the first: the shape so far may lie in the same place.
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t before = i < shape_.size() ? shape_[shape_.size() - 1 - i] : 1;
    const std::int64_t size = i < sizes.size() ? sizes[sizes.size() - 1 - i] : 1;
    merged_[kMostDims - 1 - i] = std::max(before, size);
  }
  shape_ = c10::IntArrayRef(merged_.data() + kMostDims - dims, dims);
  elements_ = unsigned_product(shape_);
}

void ResultBound::multiply(const at::Tensor& tensor) {
  const c10::IntArrayRef sizes = tensor.sizes();
  const bool scalar = sizes.empty();
  rows_ = last_rows_;
  last_rows_ = scalar ? 1 : unsigned_product(sizes.slice(0, sizes.size() - 1));
  last_row_bytes_ = (scalar ? 1 : static_cast<std::size_t>(sizes.back())) * tensor.itemsize();
}

std::optional<std::size_t> ResultBound::bytes() const {
  switch (growth_) {
    case Growth::kNone:
      return 0;
    case Growth::kModest:
      return kModestTimes * given_;
    case Growth::kBroadcast:
      return item_ * elements_;
    case Growth::kProduct:
      return 2 * rows_ * last_row_bytes_;  // its type may be twice as wide
    case Growth::kUnknown:
      return kManyTimes * given_;
    case Growth::kAnything:
      return kAllThereIs;
    case Growth::kByShape:
      break;
  }
  return std::nullopt;
}

}  // namespace headwater::adapter
