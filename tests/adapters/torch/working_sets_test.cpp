#include "working_sets.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <string_view>
#include <thread>
#include <vector>

namespace headwater::adapter {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

c10::OperatorHandle find_op(const char* name, const char* overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
}

TEST(OpKeyTest, IsTheSameForBoxedAndUnboxedArguments) {
  const c10::OperatorHandle add = find_op("aten::add", "Tensor");
  const at::Tensor a = at::ones({3, 4});
  const at::Tensor b = at::ones({4, 3}).t();
  const at::Scalar alpha = 2.5;
  EXPECT_EQ(op_key(add, a, b, alpha), boxed_op_key(add, std::vector<c10::IValue>{a, b, alpha}));
}

TEST(OpKeyTest, IsTheSameForBoxedAndUnboxedLists) {
  const c10::OperatorHandle cat = find_op("aten::cat");
  const std::vector<at::Tensor> parts{at::ones({2}), at::ones({3})};
  const at::ITensorListRef list(parts);
  const std::int64_t dim = 0;
  EXPECT_EQ(op_key(cat, list, dim), boxed_op_key(cat, std::vector<c10::IValue>{parts, dim}));
}

TEST(OpKeyTest, IsTheSameForBoxedAndUnboxedOptionals) {
  const c10::OperatorHandle sum = find_op("aten::sum", "dim_IntList");
  const at::Tensor a = at::ones({3, 4});
  const std::vector<std::int64_t> dims{1};
  const at::OptionalIntArrayRef dim(dims);
  const std::optional<at::ScalarType> dtype;
  EXPECT_EQ(op_key(sum, a, dim, true, dtype),
            boxed_op_key(sum, std::vector<c10::IValue>{a, dims, true, c10::IValue()}));
}

TEST(OpKeyTest, IsTheSameForBoxedAndUnboxedNumbersAndTexts) {
  const c10::OperatorHandle norm = find_op("aten::native_layer_norm");
  const at::Tensor a = at::ones({3, 4});
  const std::vector<c10::SymInt> shape{4};
  const std::optional<at::Tensor> weight;
  EXPECT_EQ(op_key(norm, a, c10::SymIntArrayRef(shape), weight, weight, 1e-5),
            boxed_op_key(norm,
                         std::vector<c10::IValue>{
                             a, std::vector<std::int64_t>{4}, c10::IValue(), c10::IValue(), 1e-5}));
  const c10::OperatorHandle gelu = find_op("aten::gelu");
  EXPECT_EQ(op_key(gelu, a, std::string_view("tanh")),
            boxed_op_key(gelu, std::vector<c10::IValue>{a, "tanh"}));
  const c10::OperatorHandle backward = find_op("aten::native_layer_norm_backward");
  const std::array<bool, 3> mask{true, false, true};
  EXPECT_EQ(op_key(backward, a, mask), boxed_op_key(backward, std::vector<c10::IValue>{a, mask}));
  const c10::OperatorHandle rand = find_op("aten::rand");
  const c10::SymInt size = 3;
  EXPECT_EQ(op_key(rand, size, 0.5, std::optional<bool>(false)),
            boxed_op_key(rand, std::vector<c10::IValue>{3, 0.5, false}));
}

TEST(OpKeyTest, TellsOperatorsShapesTypesAndLayoutsApart) {
  const c10::OperatorHandle neg = find_op("aten::neg");
  const OpKey key = op_key(neg, at::ones({3, 4}));
  EXPECT_NE(key, op_key(find_op("aten::exp"), at::ones({3, 4})));
  EXPECT_NE(key, op_key(neg, at::ones({4, 3})));
  EXPECT_NE(key, op_key(neg, at::ones({4, 3}).t()));
  EXPECT_NE(key, op_key(neg, at::ones({3, 4}, at::kDouble)));
  EXPECT_NE(op_key(neg, at::ones({3}), 4), op_key(neg, at::ones({3, 4})));
}

TEST(OpKeyTest, CountsFractionsOnlyWhereThereAreNoTensors) {
  const c10::OperatorHandle add = find_op("aten::add", "Tensor");
  const at::Tensor a = at::ones({3, 4});
  EXPECT_EQ(op_key(add, a, a, at::Scalar(0.5)), op_key(add, a, a, at::Scalar(0.25)));
  const c10::OperatorHandle arange = find_op("aten::arange");
  EXPECT_NE(op_key(arange, at::Scalar(0.5)), op_key(arange, at::Scalar(0.25)));
}

class WorkingSetsTest : public ::testing::Test {
 protected:
  NewBytes predict(const char* name, const std::vector<c10::IValue>& arguments, std::size_t room) {
    const c10::OperatorHandle op = find_op(name);
    return sets_.predict(op, make_traits(op, c10::kCPU), arguments, room);
  }

  WorkingSets sets_{c10::Device(c10::kCPU)};
};

TEST_F(WorkingSetsTest, PointwiseOperatorsNeedTheirResultsOnly) {
  const NewBytes bytes = predict("aten::neg", {at::ones({1024})}, 100 * kMiB);
  EXPECT_EQ(bytes.outputs, 4096U);
  EXPECT_EQ(bytes.total, 4096U);
}

TEST_F(WorkingSetsTest, AFirstProductMayNeedAllThereIs) {
  const std::vector<c10::IValue> arguments{at::ones({8, 8}), at::ones({8, 8})};
  EXPECT_GT(predict("aten::mm", arguments, 100 * kMiB).total, 100 * kMiB);
  EXPECT_LE(predict("aten::mm", arguments, 1024 * kMiB).total, 1024 * kMiB);
}

TEST_F(WorkingSetsTest, TheFirstProductTeachesThatTheLibraryIsSetUpAndNothingElse) {
  const c10::OperatorHandle mm = find_op("aten::mm");
  const OpTraits traits = make_traits(mm, c10::kCPU);
  const std::vector<c10::IValue> arguments{at::ones({8, 8}), at::ones({8, 8})};
  const OpKey key = boxed_op_key(mm, arguments);
  sets_.learn(key, traits, {.outputs = 256, .total = 64 * kMiB});
  EXPECT_FALSE(sets_.find(key));
  EXPECT_LT(sets_.predict(mm, traits, arguments, 0).total, 64 * kMiB);
  sets_.learn(key, traits, {.outputs = 256, .total = 512});
  ASSERT_TRUE(sets_.find(key));
  EXPECT_EQ(sets_.find(key)->total, 512U);
}

TEST_F(WorkingSetsTest, TheLibraryIsSetUpForEachThread) {
  const c10::OperatorHandle mm = find_op("aten::mm");
  const OpTraits traits = make_traits(mm, c10::kCPU);
  sets_.learn(OpKey(1), traits, {.total = 64 * kMiB});
  EXPECT_FALSE(sets_.is_unknown(traits.workspace));
  std::thread([&] { EXPECT_TRUE(sets_.is_unknown(traits.workspace)); }).join();
}

TEST_F(WorkingSetsTest, NoResultsAreKnownWhereTheyDependOnValues) {
  const NewBytes bytes = predict("aten::nonzero", {at::ones({1024})}, 100 * kMiB);
  EXPECT_EQ(bytes.outputs, 0U);
  EXPECT_GE(bytes.total, 4096U);
}

TEST_F(WorkingSetsTest, AnOperatorThatHasNotRunGetsPlenty) {
  const NewBytes bytes = predict("aten::nonzero", {at::ones({kMiB})}, 0);
  EXPECT_EQ(bytes.total, 4 * 4 * kMiB + 32 * kMiB);
}

TEST_F(WorkingSetsTest, WhatAnOperatorTookTellsWhatItTakesOnOtherShapes) {
  const c10::OperatorHandle nonzero = find_op("aten::nonzero");
  const OpTraits traits = make_traits(nonzero, c10::kCPU);
  sets_.learn(OpKey(1), traits, {.given = 4 * kMiB, .outputs = 0, .total = 12 * kMiB});
  sets_.learn(OpKey(2), traits, {.given = 8 * kMiB, .outputs = 0, .total = 8 * kMiB});
  sets_.learn(OpKey(3), traits, {.given = 1024, .outputs = 0, .total = 1000});
  EXPECT_EQ(predict("aten::nonzero", {at::ones({2 * kMiB})}, 0).total, 24 * kMiB + 1000);
  EXPECT_EQ(predict("aten::nonzero", {at::ones({16})}, 0).total, 3 * 64 + 1000U);
}

}  // namespace
}  // namespace headwater::adapter
