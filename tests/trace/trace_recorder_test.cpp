#include "headwater/trace/trace_recorder.h"

#include <gtest/gtest.h>

#include <array>

namespace headwater {
namespace {

constexpr Access kRead{TensorId(1), 10, AccessKind::kRead};
constexpr Access kMade{TensorId(2), 20, AccessKind::kNew};

void record_op(TraceRecorder& recorder, std::uint64_t key) {
  const OpRef op = recorder.begin_op({.key = OpKey(key)}, std::array{kRead});
  recorder.end_op(op, std::array{kMade}, 5);
}

TEST(TraceRecorderTest, AnEndedStepIsHandedOver) {
  TraceRecorder recorder;
  record_op(recorder, 7);
  recorder.release(TensorId(2), 20);
  const StepTrace& trace = recorder.end_step();
  StepTrace expected{.step = StepId(1)};
  expected.end_op(expected.begin_op({.key = OpKey(7)}, std::array{kRead}), std::array{kMade}, 5);
  expected.release(TensorId(2), 20);
  EXPECT_EQ(trace, expected);
  EXPECT_EQ(recorder.current(), StepTrace{.step = StepId(2)});
}

TEST(TraceRecorderTest, TheLastStepsAreKept) {
  TraceRecorder recorder(2);
  for (std::uint64_t key = 1; key <= 4; ++key) {
    record_op(recorder, key);
    recorder.end_step();
  }
  EXPECT_EQ(recorder.find(StepId(2)), nullptr);
  ASSERT_NE(recorder.find(StepId(3)), nullptr);
  EXPECT_EQ(recorder.find(StepId(3))->ops[0].start.key, OpKey(3));
  EXPECT_EQ(recorder.find(StepId(4))->ops[0].start.key, OpKey(4));
}

TEST(TraceRecorderTest, ATimeMayArriveAfterItsStep) {
  TraceRecorder recorder(1);
  const OpRef op = recorder.begin_op({}, {});
  recorder.end_op(op, {}, 0);
  const StepTrace& trace = recorder.end_step();
  recorder.set_time(op, 42);
  EXPECT_EQ(trace.ops[0].time_ns, 42U);
}

TEST(TraceRecorderTest, ATimeOfAForgottenStepIsIgnored) {
  TraceRecorder recorder(1);
  const OpRef op = recorder.begin_op({}, {});
  recorder.end_step();
  recorder.end_step();
  record_op(recorder, 1);
  recorder.set_time(op, 42);
  EXPECT_EQ(recorder.current().ops[0].time_ns, kUnknownTime);
}

TEST(TraceRecorderTest, AnOperatorThatOutlivesItsStepLeavesNoResults) {
  TraceRecorder recorder;
  const OpRef op = recorder.begin_op({}, {});
  recorder.end_step();
  recorder.end_op(op, std::array{kMade}, 0);
  EXPECT_TRUE(recorder.current().accesses.empty());
}

TEST(TraceRecorderTest, ARepeatedStepAllocatesNothing) {
  TraceRecorder recorder(1);
  const auto run_step = [&] {
    for (std::uint64_t key = 0; key < 100; ++key) {
      record_op(recorder, key);
    }
  };
  run_step();
  recorder.end_step();
  const OpRecord* ops = recorder.current().ops.data();
  const Access* accesses = recorder.current().accesses.data();
  run_step();
  EXPECT_EQ(recorder.current().ops.data(), ops);
  EXPECT_EQ(recorder.current().accesses.data(), accesses);
}

}  // namespace
}  // namespace headwater
