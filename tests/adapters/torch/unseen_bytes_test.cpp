#include "unseen_bytes.h"

#include <gtest/gtest.h>

namespace headwater::adapter {
namespace {

constexpr std::size_t kAnySwing = std::size_t{1} << 40;

TEST(UnseenBytesTest, AreThoseThatNobodyIsChargedFor) {
  UnseenBytes unseen;
  EXPECT_EQ(unseen.now(), 0U);
  unseen.look(100, 70);
  EXPECT_EQ(unseen.now(), 30U);
  unseen.look(60, 70);  // a charge comes before its allocation
  EXPECT_EQ(unseen.now(), 0U);
}

TEST(UnseenBytesTest, AStepsMostIsKeptForAFewSteps) {
  UnseenBytes unseen;
  unseen.look(80, 0);
  unseen.look(30, 0);
  EXPECT_EQ(unseen.end_step(kAnySwing), 80U);
  for (std::size_t i = 1; i < PeakWindow::kSteps; ++i) {
    EXPECT_EQ(unseen.end_step(kAnySwing), 80U);
  }
  EXPECT_EQ(unseen.end_step(kAnySwing), 30U);
}

TEST(UnseenBytesTest, TheMostIsForgottenWhenItStartsAgain) {
  UnseenBytes unseen;
  unseen.look(80, 0);
  unseen.end_step(kAnySwing);
  unseen.look(30, 0);
  unseen.start_again();
  EXPECT_EQ(unseen.end_step(kAnySwing), 30U);
}

TEST(UnseenBytesTest, MoreThanASwingAboveThoseOfNowIsNotBelieved) {
  UnseenBytes unseen;
  unseen.look(1000, 0);
  unseen.look(30, 0);
  EXPECT_EQ(unseen.end_step(20), 50U);
}

}  // namespace
}  // namespace headwater::adapter
