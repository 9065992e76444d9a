#include "op_traits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace headwater::adapter {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr AccessKind kRead = AccessKind::kRead;
constexpr AccessKind kWrite = AccessKind::kWrite;

c10::OperatorHandle find(const std::string& name, const std::string& overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());
}

OpTraits traits_of(const std::string& name, const std::string& overload = "") {
  return make_traits(find(name, overload), c10::kCPU);
}

std::vector<std::pair<int, AccessKind>> uses_of(const OpTraits& traits) {
  std::vector<std::pair<int, AccessKind>> uses;
  for (const TensorArgument& argument : traits.tensors) {
    uses.emplace_back(argument.index, argument.access);
  }
  return uses;
}

TEST(OpTraitsTest, AnOrdinaryOperatorReadsItsArguments) {
  const OpTraits traits = traits_of("aten::addmm");
  EXPECT_EQ(traits.path, OpPath::kManage);
  EXPECT_EQ(traits.name, "aten::addmm");
  EXPECT_EQ(traits.num_arguments, 5U);
  EXPECT_EQ(traits.num_returns, 1U);
  EXPECT_THAT(uses_of(traits), ElementsAre(Pair(0, kRead), Pair(1, kRead), Pair(2, kRead)));
}

TEST(OpTraitsTest, MarkedArgumentsAreWritten) {
  EXPECT_THAT(uses_of(traits_of("aten::add_", "Tensor")),
              ElementsAre(Pair(0, kWrite), Pair(1, kRead)));
  EXPECT_THAT(uses_of(traits_of("aten::mm", "out")),
              ElementsAre(Pair(0, kRead), Pair(1, kRead), Pair(2, kWrite)));
  EXPECT_EQ(traits_of("aten::mm", "out").overload, "out");
}

TEST(OpTraitsTest, ListsOfWrittenTensorsAreWritten) {
  const OpTraits traits = traits_of("aten::_foreach_add_", "List");
  EXPECT_EQ(traits.path, OpPath::kList);
  EXPECT_THAT(uses_of(traits), ElementsAre(Pair(0, kWrite), Pair(1, kRead)));
}

TEST(OpTraitsTest, RunningStatisticsAreWrittenAlthoughNotMarked) {
  EXPECT_THAT(
      uses_of(traits_of("aten::native_batch_norm")),
      ElementsAre(
          Pair(0, kRead), Pair(1, kRead), Pair(2, kRead), Pair(3, kWrite), Pair(4, kWrite)));
}

TEST(OpTraitsTest, EveryListedWriteNamesATensorOfTheOperator) {
  for (const auto& [name, indices] : unmarked_writes()) {
    const auto op = c10::Dispatcher::singleton().findSchema({name, ""});
    ASSERT_TRUE(op.has_value()) << name;
    for (const std::uint16_t index : indices) {
      const auto& argument = op->schema().arguments().at(index);
      EXPECT_THAT(argument.name(),
                  testing::AnyOf(testing::HasSubstr("running_"), "dropout_state", "reserve"))
          << name;
    }
  }
}

TEST(OpTraitsTest, ViewsTouchNoBytes) {
  EXPECT_EQ(traits_of("aten::view").path, OpPath::kView);
  EXPECT_EQ(traits_of("aten::transpose", "int").path, OpPath::kView);
  EXPECT_EQ(traits_of("aten::slice", "Tensor").path, OpPath::kView);
  EXPECT_EQ(traits_of("aten::split", "Tensor").path, OpPath::kView);
  EXPECT_EQ(traits_of("aten::detach").path, OpPath::kView);
}

TEST(OpTraitsTest, OperatorsThatChangeTheStorageAreNoViews) {
  EXPECT_EQ(traits_of("aten::resize_").path, OpPath::kManage);
  EXPECT_EQ(traits_of("aten::set_", "source_Tensor").path, OpPath::kManage);
  EXPECT_THAT(uses_of(traits_of("aten::set_", "source_Storage")),
              ElementsAre(Pair(0, kWrite), Pair(1, kRead)));
}

TEST(OpTraitsTest, CompositesPassThrough) {
  EXPECT_EQ(traits_of("aten::matmul").path, OpPath::kPassThrough);
  EXPECT_EQ(traits_of("aten::cross_entropy_loss").path, OpPath::kPassThrough);
}

TEST(OpTraitsTest, ListOperatorsAreKnownByName) {
  EXPECT_EQ(traits_of("aten::_fused_adamw_").path, OpPath::kList);
  EXPECT_EQ(traits_of("aten::_amp_foreach_non_finite_check_and_unscale_").path, OpPath::kList);
  EXPECT_EQ(traits_of("aten::cat").path, OpPath::kManage);
}

TEST(OpTraitsTest, OperatorsWithTheirOwnPathsAreFound) {
  EXPECT_EQ(traits_of("aten::record_stream").path, OpPath::kRecordStream);
}

TEST(OpTraitsTest, ShapesAreReadWithoutBytes) {
  EXPECT_THAT(uses_of(traits_of("aten::empty_like")), IsEmpty());
  EXPECT_THAT(uses_of(traits_of("aten::zeros_like")), IsEmpty());
}

TEST(OpTraitsTest, TheGradientOfALossOverClassesNeedsTheShapeAloneOfWhatItWasGiven) {
  for (const char* name : {"aten::nll_loss_backward", "aten::nll_loss2d_backward"}) {
    const auto op = find(name);
    EXPECT_EQ(op.schema().arguments().at(1).name(), "self") << name;
    EXPECT_THAT(uses_of(make_traits(op, c10::kCPU)),
                ElementsAre(Pair(0, kRead), Pair(2, kRead), Pair(3, kRead), Pair(6, kRead)))
        << name;
  }
  EXPECT_THAT(uses_of(traits_of("aten::nll_loss_forward")),
              ElementsAre(Pair(0, kRead), Pair(1, kRead), Pair(2, kRead)));
}

/// An operator that exists as long as this does.
std::unique_ptr<torch::Library> define(const std::string& schema) {
  auto library = std::make_unique<torch::Library>(
      torch::Library::FRAGMENT, "headwater_test", std::nullopt, __FILE__, __LINE__);
  library->def(torch::schema(schema.c_str()));
  return library;
}

TEST(OpTraitsTest, OperatorsOfOthersMayWriteWhatTheyAreGiven) {
  const auto library = define("foreign(Tensor x, int n, Tensor[] more) -> Tensor");
  EXPECT_THAT(uses_of(traits_of("headwater_test::foreign")),
              ElementsAre(Pair(0, kWrite), Pair(2, kWrite)));
}

TEST(OpTraitsTest, WhatWritesOrDrawsOrIsOfOthersMayNotRunTwice) {
  EXPECT_TRUE(traits_of("aten::mm").repeatable);
  EXPECT_FALSE(traits_of("aten::mm", "out").repeatable);
  EXPECT_FALSE(traits_of("aten::native_dropout").repeatable);
  EXPECT_FALSE(traits_of("aten::native_batch_norm").repeatable);
  EXPECT_FALSE(traits_of("aten::_cudnn_rnn_backward").repeatable);
  const std::unique_ptr<torch::Library> library = define("draw_batch(int number) -> Tensor");
  EXPECT_FALSE(traits_of("headwater_test::draw_batch").repeatable);
}

TEST(OpTableTest, TraitsOfAnOperatorAreWorkedOutOnce) {
  OpTable table(c10::kCPU);
  const c10::OperatorHandle op = find("aten::mm");
  EXPECT_EQ(&table.traits(op), &table.traits(op));
  EXPECT_EQ(table.traits(op).name, "aten::mm");
}

TEST(OpTableTest, TablesOfSuccessiveSessionsAreApart) {
  const c10::OperatorHandle op = find("aten::mm");
  {
    OpTable first(c10::kCPU);
    EXPECT_EQ(first.traits(op).num_arguments, 2U);
  }
  OpTable second(c10::kCPU);
  EXPECT_EQ(second.traits(op).num_arguments, 2U);
}

TEST(OpTableTest, AnOperatorDefinedAnewIsLookedUpAnew) {
  OpTable table(c10::kCPU);
  for (int i = 0; i < 8; ++i) {
    const std::string name = "again" + std::to_string(i % 3);
    const std::string arguments = i % 2 == 0 ? "(Tensor x)" : "(Tensor x, Tensor y, int n)";
    const auto library = define(name + arguments + " -> Tensor");
    const OpTraits& traits = table.traits(find("headwater_test::" + name));
    EXPECT_EQ(traits.name, "headwater_test::" + name);
    EXPECT_EQ(traits.num_arguments, i % 2 == 0 ? 1U : 3U);
  }
}

}  // namespace
}  // namespace headwater::adapter
