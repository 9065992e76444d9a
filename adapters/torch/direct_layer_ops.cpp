#include "direct_op.h"
#include "direct_ops.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_adaptive_avg_pool2d_backward_ops.h>
#include <ATen/ops/_adaptive_avg_pool2d_ops.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_ops.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_ops.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_ops.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/_thnn_fused_lstm_cell_backward_impl_ops.h>
#include <ATen/ops/_thnn_fused_lstm_cell_ops.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/avg_pool2d_backward_ops.h>
#include <ATen/ops/avg_pool2d_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/convolution_backward_ops.h>
#include <ATen/ops/convolution_ops.h>
#include <ATen/ops/cudnn_batch_norm_backward_ops.h>
#include <ATen/ops/cudnn_batch_norm_ops.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/leaky_relu_backward_ops.h>
#include <ATen/ops/leaky_relu_ops.h>
#include <ATen/ops/max_pool2d_with_indices_backward_ops.h>
#include <ATen/ops/max_pool2d_with_indices_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/mse_loss_backward_ops.h>
#include <ATen/ops/mse_loss_ops.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>
#include <ATen/ops/native_dropout_backward_ops.h>
#include <ATen/ops/native_dropout_ops.h>
#include <ATen/ops/native_group_norm_backward_ops.h>
#include <ATen/ops/native_group_norm_ops.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/silu_backward_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/threshold_backward_ops.h>

namespace headwater::adapter {
namespace {

namespace ops = at::_ops;

void register_products_and_convolutions(torch::Library& library) {
  register_all<ops::mm,
               ops::addmm,
               ops::bmm,
               ops::baddbmm,
               ops::convolution,
               ops::convolution_backward>(library);
}

void register_activations(torch::Library& library) {
  register_all<ops::relu,
               ops::relu_,
               ops::threshold_backward,
               ops::gelu,
               ops::gelu_backward,
               ops::silu,
               ops::silu_backward,
               ops::sigmoid,
               ops::sigmoid_,
               ops::sigmoid_backward,
               ops::tanh,
               ops::tanh_,
               ops::tanh_backward,
               ops::leaky_relu,
               ops::leaky_relu_backward,
               ops::_softmax,
               ops::_softmax_backward_data,
               ops::_log_softmax,
               ops::_log_softmax_backward_data,
               ops::native_dropout,
               ops::native_dropout_backward>(library);
}

void register_normalisation(torch::Library& library) {
  register_all<ops::native_layer_norm,
               ops::native_layer_norm_backward,
               ops::native_group_norm,
               ops::native_group_norm_backward,
               ops::native_batch_norm,
               ops::native_batch_norm_backward,
               ops::cudnn_batch_norm,
               ops::cudnn_batch_norm_backward>(library);
}

void register_attention_and_recurrent_cells(torch::Library& library) {
  register_all<ops::_scaled_dot_product_flash_attention,
               ops::_scaled_dot_product_flash_attention_backward,
               ops::_scaled_dot_product_cudnn_attention,
               ops::_scaled_dot_product_cudnn_attention_backward,
               ops::_scaled_dot_product_efficient_attention,
               ops::_scaled_dot_product_efficient_attention_backward,
               ops::_scaled_dot_product_flash_attention_for_cpu,
               ops::_scaled_dot_product_flash_attention_for_cpu_backward,
               ops::_thnn_fused_lstm_cell,
               ops::_thnn_fused_lstm_cell_backward_impl>(library);
}

void register_losses_and_pooling(torch::Library& library) {
  register_all<ops::nll_loss_forward,
               ops::nll_loss_backward,
               ops::mse_loss,
               ops::mse_loss_backward,
               ops::max_pool2d_with_indices,
               ops::max_pool2d_with_indices_backward,
               ops::_adaptive_avg_pool2d,
               ops::_adaptive_avg_pool2d_backward,
               ops::avg_pool2d,
               ops::avg_pool2d_backward>(library);
}

}  // namespace

void register_direct_layer_operators(torch::Library& library) {
  register_products_and_convolutions(library);
  register_activations(library);
  register_normalisation(library);
  register_attention_and_recurrent_cells(library);
  register_losses_and_pooling(library);
}

}  // namespace headwater::adapter
