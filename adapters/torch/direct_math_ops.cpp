#include "direct_op.h"
#include "direct_ops.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_foreach_add_ops.h>
#include <ATen/ops/_foreach_addcdiv_ops.h>
#include <ATen/ops/_foreach_addcmul_ops.h>
#include <ATen/ops/_foreach_copy_ops.h>
#include <ATen/ops/_foreach_div_ops.h>
#include <ATen/ops/_foreach_lerp_ops.h>
#include <ATen/ops/_foreach_mul_ops.h>
#include <ATen/ops/_foreach_neg_ops.h>
#include <ATen/ops/_foreach_norm_ops.h>
#include <ATen/ops/_foreach_sqrt_ops.h>
#include <ATen/ops/_foreach_zero_ops.h>
#include <ATen/ops/_fused_adam_ops.h>
#include <ATen/ops/_fused_adamw_ops.h>
#include <ATen/ops/_fused_sgd_ops.h>
#include <ATen/ops/_local_scalar_dense_ops.h>
#include <ATen/ops/_to_copy_ops.h>
#include <ATen/ops/_unsafe_view_ops.h>
#include <ATen/ops/abs_ops.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addcdiv_ops.h>
#include <ATen/ops/addcmul_ops.h>
#include <ATen/ops/amax_ops.h>
#include <ATen/ops/argmax_ops.h>
#include <ATen/ops/bitwise_and_ops.h>
#include <ATen/ops/bitwise_not_ops.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/clamp_ops.h>
#include <ATen/ops/clone_ops.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/cumsum_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/embedding_dense_backward_ops.h>
#include <ATen/ops/embedding_ops.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/flip_ops.h>
#include <ATen/ops/gather_ops.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/index_add_ops.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/isnan_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/lerp_ops.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/maximum_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/minimum_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/repeat_ops.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/scatter_add_ops.h>
#include <ATen/ops/select_backward_ops.h>
#include <ATen/ops/slice_backward_ops.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/stack_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/tril_ops.h>
#include <ATen/ops/triu_ops.h>
#include <ATen/ops/unsafe_split_ops.h>
#include <ATen/ops/where_ops.h>
#include <ATen/ops/zero_ops.h>

namespace headwater::adapter {
namespace {

namespace ops = at::_ops;

void register_arithmetic(torch::Library& library) {
  register_all<ops::add_Tensor,
               ops::add__Tensor,
               ops::sub_Tensor,
               ops::sub__Tensor,
               ops::mul_Tensor,
               ops::mul__Tensor,
               ops::mul_Scalar,
               ops::div_Tensor,
               ops::div__Tensor,
               ops::neg,
               ops::abs,
               ops::exp,
               ops::log,
               ops::sqrt,
               ops::rsqrt,
               ops::reciprocal,
               ops::pow_Tensor_Scalar,
               ops::clamp,
               ops::clamp_min,
               ops::maximum,
               ops::minimum,
               ops::where_self,
               ops::lerp__Scalar,
               ops::addcmul_,
               ops::addcdiv_>(library);
}

void register_comparison(torch::Library& library) {
  register_all<ops::eq_Tensor,
               ops::eq_Scalar,
               ops::ne_Scalar,
               ops::lt_Scalar,
               ops::gt_Scalar,
               ops::ge_Scalar,
               ops::le_Scalar,
               ops::lt_Tensor,
               ops::gt_Tensor,
               ops::bitwise_and_Tensor,
               ops::bitwise_not,
               ops::isnan,
               ops::masked_fill_Scalar,
               ops::masked_fill__Scalar,
               ops::tril,
               ops::triu>(library);
}

void register_reductions(torch::Library& library) {
  register_all<ops::sum,
               ops::sum_dim_IntList,
               ops::mean,
               ops::mean_dim,
               ops::amax,
               ops::argmax,
               ops::cumsum>(library);
}

void register_indexing(torch::Library& library) {
  register_all<ops::embedding,
               ops::embedding_dense_backward,
               ops::gather,
               ops::scatter_add,
               ops::index_select,
               ops::index_add_,
               ops::slice_backward,
               ops::select_backward>(library);
}

void register_copies_and_shapes(torch::Library& library) {
  register_all<ops::copy_,
               ops::_to_copy,
               ops::_local_scalar_dense,
               ops::_unsafe_view,
               ops::clone,
               ops::fill__Scalar,
               ops::zero_,
               ops::cat,
               ops::stack,
               ops::unsafe_split_Tensor,
               ops::repeat,
               ops::flip>(library);
}

void register_lists(torch::Library& library) {
  register_all<ops::_foreach_add__Scalar,
               ops::_foreach_add__List,
               ops::_foreach_mul__Scalar,
               ops::_foreach_mul__Tensor,
               ops::_foreach_lerp__Scalar,
               ops::_foreach_addcmul__Scalar,
               ops::_foreach_addcdiv__Scalar,
               ops::_foreach_addcdiv__ScalarList,
               ops::_foreach_div__ScalarList,
               ops::_foreach_div__Scalar,
               ops::_foreach_sqrt,
               ops::_foreach_norm_Scalar,
               ops::_foreach_neg,
               ops::_foreach_copy_,
               ops::_foreach_zero_,
               ops::_fused_adam_,
               ops::_fused_adamw_,
               ops::_fused_sgd_>(library);
}

}  // namespace

void register_direct_math_operators(torch::Library& library) {
  register_arithmetic(library);
  register_comparison(library);
  register_reductions(library);
  register_indexing(library);
  register_copies_and_shapes(library);
  register_lists(library);
}

}  // namespace headwater::adapter
