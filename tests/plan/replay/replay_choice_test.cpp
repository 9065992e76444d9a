#include "headwater/plan/replay/replay_choice.h"

#include <gtest/gtest.h>

namespace headwater {
namespace {

TEST(ReplayChoiceTest, PrintsOneLineATensorAndItsCost) {
  const ReplayChoice choice{
      .tensors = {{3, 4, 10}, {7, 12, 80}}, .recipes = {2, 9}, .num_runs = 3, .extra_ns = 500};
  EXPECT_EQ(to_string(choice),
            "3: 4 to 10\n"
            "7: 12 to 80\n"
            "recipes 2 9, 3 runs, 500 ns\n");
}

}  // namespace
}  // namespace headwater
