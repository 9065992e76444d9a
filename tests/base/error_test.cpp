#include "headwater/base/error.h"

#include "headwater/base/bytes.h"

#include <gtest/gtest.h>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

TEST(OutOfMemoryTest, SaysWhatWasAskedAndWhichBudgetWouldDo) {
  const OutOfMemory error(Shortage{.op = "aten::mm",
                                   .working_set = 12_MiB,
                                   .budget = 8_MiB,
                                   .pinned = 0,
                                   .smallest_budget = 12_MiB,
                                   .note = {}});
  EXPECT_STREQ(error.what(),
               "Out of memory: operator does not fit the budget. Raise the budget or release "
               "holds: op aten::mm, working set 12 MiB (12582912 bytes), budget 8 MiB (8388608 "
               "bytes), pinned by others 0 B, smallest budget that would do 12 MiB (12582912 "
               "bytes)");
}

TEST(OutOfMemoryTest, OutsideAnOperatorNoneIsNamedAndANoteComesLast) {
  const OutOfMemory error(Shortage{.op = "",
                                   .working_set = 100,
                                   .budget = 50,
                                   .pinned = 20,
                                   .smallest_budget = 120,
                                   .note = "host limit reached"});
  EXPECT_STREQ(error.what(),
               "Out of memory: request does not fit the budget. Raise the budget or release holds: "
               "working set 100 B, budget 50 B, pinned by others 20 B, smallest budget that would "
               "do 120 B, host limit reached");
}

TEST(OutOfMemoryTest, CarriesItsNumbers) {
  const Shortage shortage{.op = "aten::add",
                          .working_set = 3,
                          .budget = 2,
                          .pinned = 1,
                          .smallest_budget = 4,
                          .note = {}};
  EXPECT_EQ(OutOfMemory(shortage).shortage(), shortage);
}

TEST(OutOfMemoryTest, OfALowerTierHasTheTextItIsGiven) {
  const OutOfMemory error("Host memory is used up: limit 1 GiB");
  EXPECT_STREQ(error.what(), "Host memory is used up: limit 1 GiB");
  EXPECT_EQ(error.shortage(), Shortage{});
}

TEST(ErrorTest, EveryErrorIsCaughtAsError) {
  EXPECT_THROW(throw InvalidArgument("x"), Error);
  EXPECT_THROW(throw DeviceError("x"), Error);
  EXPECT_THROW(throw InternalError("x"), Error);
  EXPECT_THROW(throw OutOfMemory("x"), Error);
}

}  // namespace
}  // namespace headwater
