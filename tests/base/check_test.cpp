#include "headwater/base/check.h"

#include "headwater/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace headwater {
namespace {

template <class Function>
std::string message_of(const Function& function) {
  try {
    function();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(CheckTest, AHeldConditionDoesNothing) {
  EXPECT_EQ(message_of([] { HEADWATER_CHECK(true); }), "");
  EXPECT_EQ(message_of([] { HEADWATER_CHECK_EQ(1, 1); }), "");
  EXPECT_EQ(message_of([] { HEADWATER_CHECK_LE(1, 2); }), "");
}

TEST(CheckTest, ABrokenConditionNamesItselfAndItsPlaceWithoutFolders) {
  const std::string message = message_of([] { HEADWATER_CHECK(1 > 2); });
  EXPECT_TRUE(message.starts_with("Broken invariant, please report it: 1 > 2 at check_test.cpp:"))
      << message;
}

TEST(CheckTest, ABrokenComparisonShowsBothValues) {
  const int held = 5;
  const int limit = 3;
  EXPECT_NE(message_of([&] { HEADWATER_CHECK_LE(held, limit); }).find("5 against 3"),
            std::string::npos);
  EXPECT_NE(message_of([&] { HEADWATER_CHECK_EQ(held, limit); }).find("held == limit"),
            std::string::npos);
}

TEST(CheckTest, OperandsAreEvaluatedOnce) {
  int calls = 0;
  HEADWATER_CHECK_EQ(++calls, 1);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace headwater
