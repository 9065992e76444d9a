#include "headwater/trace/coding/runs.h"

#include "headwater/base/error.h"

#include <gtest/gtest.h>

namespace headwater::coding {
namespace {

TEST(RunsTest, EntriesComeBackWithTheirDifferences) {
  ByteWriter writer;
  RunWriter runs(writer);
  runs.given(10, 8);
  runs.given(10, 11);
  runs.unknown();
  runs.guessed();
  runs.finish();
  ByteReader reader(writer.written(), 0);
  RunReader read(reader);
  EXPECT_EQ(read.next(), Entry::kGiven);
  EXPECT_EQ(reader.difference(10), 8U);
  EXPECT_EQ(read.next(), Entry::kGiven);
  EXPECT_EQ(reader.difference(10), 11U);
  EXPECT_EQ(read.next(), Entry::kUnknown);
  EXPECT_EQ(read.next(), Entry::kGuessed);
  EXPECT_NO_THROW(read.finish());
  EXPECT_EQ(reader.left(), 0U);
}

TEST(RunsTest, AColumnThatIsGuessedThroughoutTakesOneNumber) {
  ByteWriter writer;
  RunWriter runs(writer);
  for (int i = 0; i < 30; ++i) {
    runs.guessed();
  }
  runs.finish();
  EXPECT_EQ(writer.written().size(), 1U);
}

TEST(RunsTest, AnEmptyColumnTakesNothing) {
  ByteWriter writer;
  RunWriter(writer).finish();
  EXPECT_TRUE(writer.written().empty());
}

TEST(RunsTest, ARunLongerThanItsColumnIsRefused) {
  ByteWriter writer;
  writer.number(2 << 2);
  ByteReader reader(writer.written(), 0);
  RunReader read(reader);
  read.next();
  EXPECT_THROW(read.finish(), InvalidArgument);
}

TEST(RunsTest, RunsThatAreEmptyOrOfNoKindAreRefused) {
  for (const unsigned run : {0U, (1U << 2) + 3}) {
    ByteWriter writer;
    writer.number(run);
    ByteReader reader(writer.written(), 0);
    EXPECT_THROW(RunReader(reader).next(), InvalidArgument);
  }
}

}  // namespace
}  // namespace headwater::coding
