#include "headwater/trace/coding/step_writer.h"

#include "headwater/base/error.h"
#include "headwater/trace/coding/step_reader.h"
#include "support/synthetic_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headwater::coding {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Two steps of one training.
class StepWriterTest : public testing::Test {
 protected:
  static StepTrace read(StepReader& reader, const std::vector<std::byte>& bytes) {
    ByteReader in(bytes, 0);
    return reader.read(in);
  }
  static std::uint64_t num_records(const StepTrace& step) {
    return step.ops.size() + 1 + step.accesses.size() + step.releases.size();
  }

  support::SyntheticTraining training_{{.seed = 2}};
  const StepTrace first_ = training_.next_step();
  const StepTrace second_ = training_.next_step();
  const std::uint64_t both_ = num_records(first_) + num_records(second_);
};

TEST_F(StepWriterTest, StepsAreReadInTheOrderOfWriting) {
  StepWriter writer;
  StepReader reader;
  EXPECT_EQ(read(reader, writer.write(first_)), first_);
  EXPECT_EQ(read(reader, writer.write(second_)), second_);
  EXPECT_EQ(read(reader, writer.write(first_)), first_);
}

TEST_F(StepWriterTest, AFileTakesNoMoreThanCanBeRead) {
  StepWriter writer(both_ - 1);
  StepReader reader(both_);
  EXPECT_NO_THROW(writer.write(first_));
  EXPECT_THROW(writer.write(second_), InvalidArgument);
  StepWriter larger(both_);
  EXPECT_EQ(read(reader, larger.write(first_)), first_);
  EXPECT_EQ(read(reader, larger.write(second_)), second_);
}

TEST_F(StepWriterTest, AFewBytesThatStandForTooMuchAreRefused) {
  StepWriter writer;
  StepReader reader(both_ - 1);
  read(reader, writer.write(first_));
  try {
    read(reader, writer.write(second_));
    FAIL() << "more was read than allowed";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), StartsWith("Trace file is damaged. "));
    EXPECT_THAT(error.what(), HasSubstr("operators, accesses and releases"));
  }
}

}  // namespace
}  // namespace headwater::coding
