#include "direct_ops.h"

#include <ATen/core/boxing/impl/boxing.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/_to_copy_ops.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/clone_ops.h>
#include <ATen/ops/convolution_backward_ops.h>
#include <ATen/ops/convolution_ops.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/embedding_ops.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/native_dropout_backward_ops.h>
#include <ATen/ops/native_dropout_ops.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/select_backward_ops.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/silu_backward_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/slice_backward_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <ATen/ops/where_ops.h>
#include <ATen/ops/zero_ops.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "dispatch_key.h"
#include "interceptor.h"
#include "op_scope.h"
#include "session_state.h"
#include "session_switch.h"
#include <tuple>
#include <type_traits>

namespace headwater::adapter {
namespace {

using Uses = c10::SmallVector<TensorUse, 8>;

void collect(Uses& uses, const at::Tensor& tensor) {
  uses.push_back({&tensor, AccessKind::kRead});
}
void collect(Uses& uses, at::Tensor& tensor) {
  uses.push_back({&tensor, AccessKind::kWrite});
}
void collect(Uses& uses, const std::optional<at::Tensor>& tensor) {
  if (tensor) {
    uses.push_back({&*tensor, AccessKind::kRead});
  }
}
template <class Value>
void collect(Uses& /*uses*/, const Value& /*not a tensor*/) {}

void finish(OpScope& scope, const at::Tensor& result) {
  scope.finish({&result});
}
template <class... Results>
void finish(OpScope& scope, const std::tuple<Results...>& results) {
  std::apply([&scope](const auto&... result) { scope.finish({&result...}); }, results);
}

template <class Op, class Signature>
struct Direct;

template <class Op, class Result, class... Args>
struct Direct<Op, Result(Args...)> {
  static Result run(c10::DispatchKeySet all_keys, Args... args) {
    static const c10::OperatorHandle kOp =
        c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name);
    const c10::DispatchKeySet keys = all_keys & kBelowIntercept;
    {
      const RunningOp running;
      SessionState* session = running.session();
      if (session != nullptr && !keys.has(c10::DispatchKey::Python) && !session->must_predict()) {
        const auto box = [&] { return c10::impl::boxArgs<Args...>(args...); };
        OpScope scope(*session, kOp, session->ops().traits(kOp));
        Uses uses;
        (collect(uses, args), ...);
        if (scope.acquire_resident(uses, box)) {
          session->count_op();
          const c10::impl::ExcludeDispatchKeyGuard exclude(kInterceptKey);
          Result result = Op::redispatch(keys, args...);
          finish(scope, result);
          return result;
        }
      }
    }
    return c10::impl::BoxedKernelWrapper<Result(Args...)>::call(
        c10::BoxedKernel::makeFromFunction<&intercept>(), kOp, all_keys, args...);
  }
};

template <class Op>
void register_direct(torch::Library& library) {
  const std::string overload(Op::overload_name);
  const std::string name = overload.empty() ? Op::name : Op::name + ("." + overload);
  library.impl(name.c_str(), &Direct<Op, typename Op::schema>::run);
}

template <class... Ops>
void register_all(torch::Library& library) {
  (register_direct<Ops>(library), ...);
}

}  // namespace

// Operators whose schema marks all they write, and that read every tensor they are given.
void register_direct_operators(torch::Library& library) {
  namespace ops = at::_ops;
  register_all<ops::add_Tensor,
               ops::add__Tensor,
               ops::sub_Tensor,
               ops::mul_Tensor,
               ops::mul__Tensor,
               ops::mul_Scalar>(library);
  register_all<ops::div_Tensor,
               ops::div__Tensor,
               ops::neg,
               ops::exp,
               ops::pow_Tensor_Scalar,
               ops::where_self>(library);
  register_all<ops::mm,
               ops::addmm,
               ops::bmm,
               ops::embedding,
               ops::convolution,
               ops::convolution_backward>(library);
  register_all<ops::sigmoid, ops::sigmoid_backward, ops::tanh, ops::tanh_backward>(library);
  register_all<ops::relu,
               ops::relu_,
               ops::threshold_backward,
               ops::gelu,
               ops::gelu_backward,
               ops::silu,
               ops::silu_backward>(library);
  register_all<ops::_softmax, ops::_softmax_backward_data>(library);
  register_all<ops::_log_softmax, ops::_log_softmax_backward_data>(library);
  register_all<ops::native_layer_norm, ops::native_layer_norm_backward>(library);
  register_all<ops::native_dropout, ops::native_dropout_backward>(library);
  register_all<ops::sum,
               ops::sum_dim_IntList,
               ops::mean_dim,
               ops::slice_backward,
               ops::select_backward>(library);
  register_all<ops::copy_, ops::_to_copy, ops::clone, ops::fill__Scalar, ops::zero_>(library);
}

}  // namespace headwater::adapter
