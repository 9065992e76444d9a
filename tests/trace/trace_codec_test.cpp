#include "headwater/trace/trace_codec.h"

#include "headwater/base/error.h"
#include "support/synthetic_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <utility>

namespace headwater {
namespace {

using support::SyntheticTraining;

constexpr Access kRead{TensorId(1), 10, AccessKind::kRead};
constexpr Access kMade{TensorId(7), 800, AccessKind::kNew, 4};
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TraceArchive archive_of(std::vector<StepTrace> steps) {
  TraceArchive archive;
  archive.steps = std::move(steps);
  return archive;
}

std::string in_hex(const std::vector<std::byte>& bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    for (const unsigned digit :
         {std::to_integer<unsigned>(byte) / 16, std::to_integer<unsigned>(byte) % 16}) {
      text.push_back("0123456789ABCDEF"[digit]);
    }
  }
  return text;
}

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

void expect_round_trip(std::vector<StepTrace> steps) {
  const TraceArchive archive = archive_of(std::move(steps));
  EXPECT_EQ(decode(encode(archive)), archive);
}

TEST(TraceCodecTest, NothingComesBackAsNothing) {
  EXPECT_EQ(decode(encode({})), TraceArchive());
}

TEST(TraceCodecTest, NamesDevicesAndRatesComeBack) {
  const TraceArchive archive{
      .op_names = {{OpKey(3), "add"}, {OpKey(kMost), "add"}, {OpKey(0), ""}},
      .device = {"a GPU with 80 GiB", "", std::string("a zero \0 within", 15)},
      .link_rates = {{"fetch", 54.25e9, 8000}, {"offload", 0.1, kMost}},
      .steps = {}};
  EXPECT_EQ(decode(encode(archive)), archive);
}

TEST(TraceCodecTest, AStepWithoutOperatorsComesBack) {
  expect_round_trip({StepTrace(), StepTrace{.step = StepId(kMost)}, StepTrace()});
}

TEST(TraceCodecTest, AnOperatorComesBackWithAllItHas) {
  StepTrace step{.step = StepId(5)};
  const Position position = step.begin_op(
      {.key = OpKey(kMost), .stream = 0xFFFFFFFF, .phase = Phase::kOptimizer}, std::array{kRead});
  step.end_op(position, std::array{kMade, kRead, kMade}, kMost);
  step.ops[position].time_ns = 123'456;
  expect_round_trip({step});
}

TEST(TraceCodecTest, KnownAndUnknownTimesComeBack) {
  StepTrace step;
  for (const std::uint64_t time_ns :
       {kUnknownTime, kUnknownTime - 1, std::uint64_t{0}, kUnknownTime, std::uint64_t{7}}) {
    step.begin_op({}, {});
    step.ops.back().time_ns = time_ns;
  }
  expect_round_trip({step, step});
}

TEST(TraceCodecTest, ReleasesComeBackBetweenAndAfterOperators) {
  StepTrace step;
  step.release(TensorId(1), 10);
  step.release(TensorId(1), 20);
  step.begin_op({}, std::array{kRead});
  step.release(TensorId(9), kMost);
  step.begin_op({}, {});
  step.release(TensorId(0), 0);
  step.release(TensorId(kMost), 1);
  expect_round_trip({step});
  expect_round_trip({step, StepTrace(), step});
}

TEST(TraceCodecTest, OverlappingAndUnendedOperatorsComeBack) {
  StepTrace step;
  const Position first = step.begin_op({.key = OpKey(1)}, std::array{kRead, kMade});
  const Position second = step.begin_op({.key = OpKey(2), .stream = 1}, std::array{kRead});
  step.begin_op({.key = OpKey(3)}, std::array{kRead});  // never ends
  step.end_op(first, std::array{kMade}, 0);
  step.end_op(second, {}, 0);
  step.begin_op({.key = OpKey(3)}, {});
  ASSERT_EQ(step.ops[2].made, AccessRange());
  expect_round_trip({step, step});
}

TEST(TraceCodecTest, StepsOfATrainingComeBack) {
  SyntheticTraining training({.num_layers = 9, .seed = 4});
  expect_round_trip({training.next_step(), training.next_step(), training.next_step()});
}

/// The step with another operator in place of the one at 50, and one more after the one at 70.
StepTrace changed(const StepTrace& step) {
  StepTrace result{.step = step.step};
  for (Position position = 0; position < step.num_ops(); ++position) {
    OpStart start = step.ops[position].start;
    start.key = position == 50 ? OpKey(99) : start.key;
    const Position copy = result.begin_op(start, step.uses(position));
    result.end_op(copy, step.made(position), step.ops[position].workspace_bytes);
    if (position == 70) {
      result.begin_op({.key = OpKey(98)}, std::array{kRead});
    }
  }
  return result;
}

TEST(TraceCodecTest, StepsThatDifferInTheMiddleComeBackAndCostLittle) {
  SyntheticTraining training({.num_layers = 40, .seed = 5});
  StepTrace step = training.next_step();
  step.releases.clear();
  ASSERT_GT(step.num_ops(), 200U);
  expect_round_trip({step, changed(step), step});
  const std::size_t base = encode(archive_of({step})).size();
  EXPECT_LT(encode(archive_of({step, changed(step)})).size(), base + 200);
}

StepTrace kept_step() {
  StepTrace step{.step = StepId(1)};
  step.end_op(step.begin_op({.key = OpKey(0xAB)}, std::array{kRead}), std::array{kMade}, 5);
  step.ops[0].time_ns = 300;
  step.release(TensorId(7), 800);
  return step;
}

TraceArchive kept_archive(const StepTrace& step) {
  TraceArchive archive = archive_of({step, step});
  archive.device = {"sim"};
  return archive;
}

// Files are kept: whoever changes these bytes gives the format a new version and still reads the
// old.
TEST(TraceCodecTest, TheBytesOfAVersionStayTheSame) {
  StepTrace step = kept_step();
  step.ops[0].start = {.key = OpKey(0xAB),
                       .stream = 1,
                       .phase = Phase::kForward,
                       .replay = Replay::kSeeded,
                       .wish = Wish::kOffload,
                       .inherits = Inherits::kFirstInput};
  EXPECT_EQ(in_hex(encode(kept_archive(step))),
            "894857540D0A1A0A03000000"
            "0107000000C1DC68AB00010373696D00"
            "0228000000D4DCA0E8"
            "0000020000AB0000000000000085808080800D00000501011404AC0C120303C00C0204050C05D804"
            "0207000000F81343B601010002000804"
            "0301000000919B38E402");
}

TEST(TraceCodecTest, BytesOfTheSecondVersionAreStillRead) {
  StepTrace step = kept_step();
  step.ops[0].start = {.key = OpKey(0xAB),
                       .stream = 1,
                       .phase = Phase::kForward,
                       .replay = Replay::kSeeded,
                       .wish = Wish::kOffload};
  EXPECT_EQ(decode(from_hex(
                "894857540D0A1A0A02000000"
                "0107000000C1DC68AB00010373696D00"
                "0228000000D4FAE351"
                "0000020000AB0000000000000085808080800500000501011404AC0C120303C00C0204050C05D804"
                "0207000000F81343B601010002000804"
                "0301000000919B38E402")),
            kept_archive(step));
}

TEST(TraceCodecTest, BytesOfTheFirstVersionAreStillRead) {
  EXPECT_EQ(decode(from_hex("894857540D0A1A0A01000000"
                            "0107000000C1DC68AB00010373696D00"
                            "02230000003A1926B2"
                            "0000020000AB000000000000000000000501011404AC0C120303C00C0204050C05D804"
                            "0207000000F81343B601010002000804"
                            "0301000000919B38E402")),
            kept_archive(kept_step()));
}

TEST(TraceCodecTest, AnAccessOfNoOperatorCannotBeWritten) {
  StepTrace step{.step = StepId(3)};
  step.accesses.push_back(kRead);
  EXPECT_THROW(encode(archive_of({step})), InvalidArgument);
  step.begin_op({}, std::array{kRead});
  EXPECT_THROW(encode(archive_of({step})), InvalidArgument);
  step.ops[0].uses = {0, 2};
  EXPECT_EQ(decode(encode(archive_of({step}))), archive_of({step}));
}

TEST(TraceCodecTest, AnAccessOfTwoOperatorsCannotBeWritten) {
  StepTrace step;
  step.begin_op({}, std::array{kRead});
  step.begin_op({}, std::array{kRead});
  step.ops[1].uses = {0, 1};
  EXPECT_THROW(encode(archive_of({step})), InvalidArgument);
  step.ops[1].uses = {4'000'000'000, 1};
  EXPECT_THROW(encode(archive_of({step})), InvalidArgument);
}

TEST(TraceCodecTest, ReleasesOutOfOrderCannotBeWritten) {
  StepTrace step;
  step.releases = {{TensorId(1), 1, 1}};
  EXPECT_THROW(encode(archive_of({step})), InvalidArgument);
  step.begin_op({}, {});
  step.releases = {{TensorId(1), 1, 1}, {TensorId(2), 1, 0}};
  EXPECT_THROW(encode(archive_of({step})), InvalidArgument);
}

}  // namespace
}  // namespace headwater
