#include "step_program.h"

#include "headwater/trace/liveness.h"

#include <gtest/gtest.h>

#include <vector>

namespace headwater::replay {
namespace {

/// Convolution (0), activation (1), fully connected (2), softmax (3) of an image of 16 numbers.
Network small() {
  NetworkBuilder net("small", {.channels = 1, .height = 4, .width = 4});
  const std::size_t convolution = net.convolution(NetworkBuilder::kImage, 2, {});
  const std::size_t activation = net.pointwise(LayerKind::kActivation, convolution);
  net.pointwise(LayerKind::kSoftmax, net.fully_connected(activation, 10));
  return net.build();
}

TEST(StepProgramTest, BackwardGoesTheOtherWay) {
  const StepProgram program = make_program(small());
  ASSERT_EQ(program.ops.size(), 8U);
  EXPECT_EQ(program.num_forward_ops, 4U);
  EXPECT_EQ(program.ops[4].run, (LayerRun{Phase::kBackward, 3}));
  EXPECT_EQ(program.ops[7].run, (LayerRun{Phase::kBackward, 0}));
}

TEST(StepProgramTest, TheSoftmaxTurnsItsOutputIntoTheGradient) {
  const ProgramOp softmax = make_program(small()).ops[4];
  EXPECT_EQ(softmax.writes, (std::vector<std::size_t>{3}));
  EXPECT_EQ(softmax.makes, std::nullopt);
}

TEST(StepProgramTest, AnActivationWritesItsGradientInPlace) {
  const StepProgram program = make_program(small());
  const ProgramOp connected = program.ops[5];
  const ProgramOp activation = program.ops[6];
  EXPECT_EQ(connected.reads, (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(activation.reads, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(activation.writes, (std::vector<std::size_t>{*connected.makes}));
  EXPECT_EQ(activation.makes, std::nullopt);
}

TEST(StepProgramTest, TheLastBackwardMakesTheGradientOfTheImage) {
  const StepProgram program = make_program(small());
  EXPECT_EQ(program.tensors[*program.ops[7].makes].numbers, 16U);
}

TEST(StepProgramTest, BranchesAddUpTheirGradientsWhereTheyForked) {
  NetworkBuilder net("fork", {.channels = 2});
  const std::size_t trunk = net.convolution(NetworkBuilder::kImage, 2, {});
  const std::size_t left = net.pointwise(LayerKind::kCopy, trunk);
  const std::size_t right = net.pointwise(LayerKind::kCopy, trunk);
  net.pointwise(LayerKind::kSoftmax, net.join(left, right));
  const StepProgram program = make_program(net.build());
  const ProgramOp join = program.ops[6];
  const ProgramOp last_copy = program.ops[8];
  EXPECT_EQ(join.writes, (std::vector<std::size_t>{4}));
  EXPECT_EQ(last_copy.reads, (std::vector<std::size_t>{*join.makes}));
  EXPECT_EQ(last_copy.writes, (std::vector<std::size_t>{4}));
}

TEST(StepProgramTest, ARecomputedOutputIsAnotherTensor) {
  const std::vector<LayerRun> backward{{Phase::kBackward, 3},
                                       {Phase::kForward, 1},
                                       {Phase::kBackward, 2},
                                       {Phase::kBackward, 1},
                                       {Phase::kBackward, 0}};
  const StepProgram program = make_program(small(), backward);
  const Liveness liveness(program.trace());
  const Lifetime first = liveness.lifetimes()[*liveness.find(TensorId(2))];
  EXPECT_EQ(first.last_use, 2U);
  EXPECT_EQ(program.ops[6].reads.front(), *program.ops[5].makes);
}

TEST(StepProgramTest, AnOperatorTakesTheLongerOfItsArithmeticAndItsBytes) {
  const StepProgram program = make_program(small());
  const ProgramOp& convolution = program.ops[0];  // makes 32 numbers with 64 operations
  EXPECT_EQ(program.op_ns(convolution, 10, {.operations_per_s = 64, .launch_ns = 3}),
            10'000'000'003U);
  EXPECT_EQ(program.op_ns(convolution, 10, {.bytes_per_s = 128, .launch_ns = 3}), 10'000'000'003U);
}

TEST(StepProgramTest, RecomputingKnowsTheGradientsAtHand) {
  const std::vector<RecomputeLayer> layers = recompute_layers(small(), 5, {});
  ASSERT_EQ(layers.size(), 4U);
  const std::size_t unit = 5 * kNumberBytes;
  EXPECT_EQ(layers[1].needs, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(layers[1].output, AfterForward::kDiscarded);
  EXPECT_EQ(layers[1].output_bytes, unit * 32);
  EXPECT_EQ(layers[1].gradient_bytes, unit * 32);
  EXPECT_EQ(layers[1].new_bytes, 0U);
  EXPECT_EQ(layers[2].gradient_bytes, unit * 10);
  EXPECT_EQ(layers[2].new_bytes, unit * 32);
}

}  // namespace
}  // namespace headwater::replay
