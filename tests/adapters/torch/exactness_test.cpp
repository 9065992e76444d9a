#include "exactness.h"

#include "recipe.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headwater::adapter {
namespace {

c10::OperatorHandle find(const std::string& name, const std::string& overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());
}

OpTraits traits_of(const std::string& name, const std::string& overload = "") {
  return make_traits(find(name, overload), c10::kCUDA);
}

/// A tensor of some device, whether there is one or not, without bytes.
at::Tensor tensor_of(c10::Device device) {
  const bool cuda = device.is_cuda();
  const Picture picture{
      .origin = {},
      .shape_only = true,
      .device = device,
      .keys = c10::DispatchKeySet(cuda ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU),
      .type = caffe2::TypeMeta::Make<float>(),
      .offset = 0,
      .sizes = {4},
      .strides = {1}};
  return picture.over(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                            0,
                                                            c10::DataPtr(nullptr, device),
                                                            /*allocator=*/nullptr,
                                                            /*resizable=*/false));
}

std::vector<c10::IValue> convolution(c10::Device device, bool transposed) {
  const at::Tensor tensor = tensor_of(device);
  const std::vector<std::int64_t> ones{1, 1};
  return {tensor, tensor, {}, ones, ones, ones, transposed, ones, 1};
}

std::vector<c10::IValue> attention(double dropout) {
  const at::Tensor tensor = tensor_of(c10::kCPU);
  return {tensor, tensor, tensor, dropout, false, false, {}};
}

/// Settings of cuDNN for one test.
class CuDnn {
 public:
  CuDnn(bool benchmark, bool deterministic) {
    at::globalContext().setBenchmarkCuDNN(benchmark);
    at::globalContext().setDeterministicCuDNN(deterministic);
  }
  ~CuDnn() {
    at::globalContext().setBenchmarkCuDNN(false);
    at::globalContext().setDeterministicCuDNN(false);
  }
  CuDnn(const CuDnn&) = delete;
  CuDnn& operator=(const CuDnn&) = delete;
  CuDnn(CuDnn&&) = delete;
  CuDnn& operator=(CuDnn&&) = delete;
};

TEST(ExactnessTest, AConvolutionIsExactUnlessCuDnnLooksForTheFastestWay) {
  const OpTraits traits = traits_of("aten::convolution");
  EXPECT_TRUE(replay_differs_by_call(traits));
  EXPECT_EQ(replay_of(traits, convolution(c10::kCUDA, false)), Replay::kExact);
  const CuDnn benchmark(true, true);
  EXPECT_EQ(replay_of(traits, convolution(c10::kCUDA, false)), Replay::kRefused);
  EXPECT_EQ(replay_of(traits, convolution(c10::kCPU, false)), Replay::kExact);
}

TEST(ExactnessTest, ATransposedConvolutionIsExactWhereCuDnnIsToldToBe) {
  const OpTraits traits = traits_of("aten::convolution");
  EXPECT_EQ(replay_of(traits, convolution(c10::kCUDA, true)), Replay::kRefused);
  EXPECT_EQ(replay_of(traits, convolution(c10::kCPU, true)), Replay::kExact);
  const OpTraits named = traits_of("aten::cudnn_convolution_transpose");
  const std::vector<c10::IValue> arguments{tensor_of(c10::kCUDA)};
  EXPECT_EQ(replay_of(named, arguments), Replay::kRefused);
  const CuDnn deterministic(false, true);
  EXPECT_EQ(replay_of(traits, convolution(c10::kCUDA, true)), Replay::kExact);
  EXPECT_EQ(replay_of(named, arguments), Replay::kExact);
}

TEST(ExactnessTest, AttentionDrawsOnlyForDropout) {
  for (const char* name : {"aten::_scaled_dot_product_flash_attention",
                           "aten::_scaled_dot_product_flash_attention_for_cpu"}) {
    const OpTraits traits = traits_of(name);
    EXPECT_EQ(traits.replay, Replay::kSeeded);
    EXPECT_TRUE(replay_differs_by_call(traits));
    EXPECT_EQ(replay_of(traits, attention(0.0)), Replay::kExact);
    EXPECT_TRUE(may_begin_again(traits, attention(0.0)));
    EXPECT_EQ(replay_of(traits, attention(0.1)), Replay::kSeeded);
    EXPECT_FALSE(may_begin_again(traits, attention(0.1)));
  }
  EXPECT_EQ(traits_of("aten::_scaled_dot_product_efficient_attention").dropout, 5U);
}

TEST(ExactnessTest, OperatorsThatAddUpInAnyOrderAreRefused) {
  for (const char* name : {"aten::multinomial", "aten::nll_loss2d_forward", "aten::cumsum"}) {
    EXPECT_EQ(traits_of(name).replay, Replay::kRefused) << name;
  }
  EXPECT_EQ(traits_of("aten::nll_loss_forward").replay, Replay::kExact);
}

TEST(ExactnessTest, SomeOperatorsInPlaceDoNotReadWhatTheyChange) {
  EXPECT_TRUE(overwrites(traits_of("aten::copy_")));
  EXPECT_TRUE(overwrites(traits_of("aten::bernoulli_", "float")));
  EXPECT_TRUE(overwrites(traits_of("aten::mul", "out")));
  EXPECT_FALSE(overwrites(traits_of("aten::mul_", "Tensor")));
  EXPECT_FALSE(overwrites(traits_of("aten::masked_fill_", "Scalar")));
}

}  // namespace
}  // namespace headwater::adapter
