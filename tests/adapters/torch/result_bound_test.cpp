#include "result_bound.h"

#include "working_sets.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace headwater::adapter {
namespace {

c10::OperatorHandle find_op(const std::string& name, const std::string& overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + name).c_str(),
                                                        overload.c_str());
}

std::optional<std::size_t> bound(const c10::OperatorHandle& op,
                                 const std::vector<c10::IValue>& arguments) {
  ResultBound results(growth_of(op));
  for (const c10::IValue& argument : arguments) {
    results.add(argument);
  }
  return results.bytes();
}

/// Of tensors without bytes, so that they may be large.
at::Tensor meta(std::vector<std::int64_t> sizes, at::ScalarType type = at::kFloat) {
  return at::empty(sizes, at::TensorOptions().device(at::kMeta).dtype(type));
}

TEST(GrowthTest, OperatorsThatReturnTheirArgumentsMakeNothing) {
  EXPECT_EQ(growth_of(find_op("add_", "Tensor")), Growth::kNone);
  EXPECT_EQ(bound(find_op("add_", "Tensor"), {meta({8}), meta({8}), 1}), 0U);
}

TEST(GrowthTest, ArgumentsThatAreResizedAreNotTakenForNothing) {
  EXPECT_EQ(growth_of(find_op("mm", "out")), Growth::kUnknown);
  EXPECT_EQ(growth_of(find_op("resize_")), Growth::kAnything);
}

TEST(GrowthTest, WhatNobodyHasLookedAtIsUnknown) {
  EXPECT_EQ(growth_of(find_op("cdist")), Growth::kUnknown);
  EXPECT_EQ(growth_of(find_op("embedding")), Growth::kByShape);
  EXPECT_EQ(growth_of(find_op("_foreach_sqrt")), Growth::kModest);
}

TEST(ResultBoundTest, ElementwiseResultsAreBoundByWhatTheirTensorsBroadcastTo) {
  const c10::OperatorHandle mul = find_op("mul", "Tensor");
  EXPECT_EQ(bound(mul, {meta({1000, 1}), meta({1, 1000})}), 8U * 1000 * 1000);
  EXPECT_EQ(bound(mul, {meta({64, 1000}), meta({1000})}), 8U * 64 * 1000);
  EXPECT_EQ(bound(mul, {meta({1000}), meta({64, 1000})}), 8U * 64 * 1000);
  EXPECT_EQ(bound(mul, {meta({}), meta({5})}), 8U * 5);
  EXPECT_EQ(bound(find_op("where", "self"), {meta({3, 1, 1}), meta({4, 1}), meta({5})}), 8U * 60);
}

TEST(ResultBoundTest, TensorsOfOneElementAndOfNoneAddNothingToAShape) {
  const c10::OperatorHandle where = find_op("where", "self");
  EXPECT_EQ(bound(where, {meta({1, 1, 1}), meta({4, 5}), meta({})}), 8U * 20);
  EXPECT_EQ(bound(where, {meta({}), meta({1}), meta({})}), 8U);
  EXPECT_EQ(bound(find_op("mul", "Tensor"), {meta({0, 5}), meta({0, 5})}), 0U);
}

TEST(ResultBoundTest, ThreeShapesThatDifferAreMergedOneByOne) {
  const c10::OperatorHandle where = find_op("where", "self");
  EXPECT_EQ(bound(where, {meta({2, 1, 3}), meta({5, 1}), meta({7, 1, 1, 1})}), 8U * 7 * 2 * 5 * 3);
}

TEST(ResultBoundTest, MoreDimensionsThanAnybodyHasAreTakenForAllThereIs) {
  std::vector<std::int64_t> many(40, 1);
  many.front() = 2;
  EXPECT_GT(bound(find_op("mul", "Tensor"), {meta(many), meta({3})}), 1U << 30);
}

TEST(ResultBoundTest, ProductsAreBoundByRowsAndColumns) {
  EXPECT_EQ(bound(find_op("mm"), {meta({1000, 1}), meta({1, 1000})}), 2U * 1000 * 1000 * 4);
  EXPECT_EQ(bound(find_op("addmm"), {meta({5}), meta({3, 4}), meta({4, 5}), 1, 1}), 2U * 3 * 5 * 4);
  EXPECT_EQ(bound(find_op("bmm"), {meta({7, 3, 4}), meta({7, 4, 5})}), 2U * 7 * 3 * 5 * 4);
  EXPECT_EQ(bound(find_op("mm"), {meta({3, 0}), meta({0, 5})}), 2U * 3 * 5 * 4);
}

TEST(ResultBoundTest, NothingIsSaidWhereOnlyTheShapeRuleKnows) {
  EXPECT_EQ(bound(find_op("embedding_dense_backward"),
                  {meta({1, 8}), meta({1}, at::kLong), 50000, -1, false}),
            std::nullopt);
}

TEST(ResultBoundTest, TensorsInListsCountAlsoWhereSomeAreMissing) {
  ResultBound results(Growth::kUnknown);
  c10::List<std::optional<at::Tensor>> indices;
  indices.push_back(std::nullopt);
  indices.push_back(meta({100}, at::kLong));
  results.add(c10::IValue(indices));
  EXPECT_EQ(results.given(), 800U);
}

TEST(ResultBoundTest, NoOperatorMakesMore) {
  const std::vector<std::int64_t> last{-1};
  const at::Tensor wide = meta({256, 64}, at::kBFloat16);
  const at::Tensor bits = meta({256, 64}, at::kBool);
  const std::vector<std::pair<c10::OperatorHandle, std::vector<c10::IValue>>> calls{
      {find_op("add", "Tensor"), {wide, meta({9, 1, 1}), 1}},
      {find_op("div", "Tensor"), {bits, bits}},
      {find_op("pow", "Tensor_Scalar"), {bits, 2.0}},
      {find_op("_to_copy"), {bits, at::kDouble, {}, {}, {}, false, {}}},
      {find_op("mse_loss"), {meta({64, 1}), meta({1, 64}), 0}},
      {find_op("mm"), {meta({64, 1}), meta({1, 64})}},
      {find_op("_softmax"), {wide, 1, false}},
      {find_op("sum", "dim_IntList"), {bits, last, true, {}}},
      {find_op("cumsum"), {bits, 0, {}}},
      {find_op("argmax"), {meta({256, 1}, at::kByte), 1, false}},
      {find_op("cat"), {std::vector<at::Tensor>{wide, wide, wide}, 0}},
      {find_op("max_pool2d_with_indices"),
       {meta({1, 1, 64, 64}, at::kBFloat16),
        std::vector<std::int64_t>{3, 3},
        std::vector<std::int64_t>{1, 1},
        std::vector<std::int64_t>{1, 1},
        std::vector<std::int64_t>{1, 1},
        false}},
  };
  for (const auto& [op, arguments] : calls) {
    const std::optional<std::size_t> made = output_bytes(op, arguments);
    ASSERT_TRUE(made) << op.schema().name();
    EXPECT_LE(*made, bound(op, arguments).value_or(0)) << op.schema().name();
  }
}

}  // namespace
}  // namespace headwater::adapter
