#include "headwater/trace/trace_codec.h"
#include "support/dice.h"

#include <gtest/gtest.h>

#include <iostream>
#include <vector>

namespace headwater {
namespace {

/// Traces without any sense but that a recorder could have written them: operators overlap or never
/// end, tensors are used after their release, and change their size at every use.
class TraceCodecRandomTest : public testing::TestWithParam<unsigned> {
 protected:
  TraceCodecRandomTest() { std::cout << "seed " << seed_ << '\n'; }

  StepTrace draw_step() {
    StepTrace step{.step = StepId(draw())};
    std::vector<Position> running;
    for (std::size_t left = dice_.roll(60); left > 0; --left) {
      if (dice_.roll(1) == 0) {
        step.release(draw_tensor(), draw());
      }
      running.push_back(step.begin_op(draw_start(), draw_accesses()));
      if (dice_.roll(3) != 0) {
        const std::size_t which = dice_.roll(running.size() - 1);
        step.end_op(running[which], draw_accesses(), dice_.roll(1) == 0 ? 0 : draw());
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
      }
      step.ops.back().time_ns = dice_.roll(1) == 0 ? kUnknownTime : draw();
    }
    return step;
  }

  /// As it is, or with parts left out and put in.
  StepTrace draw_like(const StepTrace& step) {
    StepTrace like{.step = step.step};
    const std::uint64_t shift = dice_.roll(1) == 0 ? 0 : dice_.roll(5000);
    for (Position position = 0; position < step.num_ops(); ++position) {
      if (dice_.roll(9) == 0) {
        continue;
      }
      if (dice_.roll(9) == 0) {
        like.begin_op(draw_start(), draw_accesses());
      }
      const Position copy =
          like.begin_op(step.ops[position].start, shifted(step.uses(position), shift));
      like.end_op(copy, shifted(step.made(position), shift), step.ops[position].workspace_bytes);
    }
    return like;
  }

 private:
  static std::vector<Access> shifted(std::span<const Access> accesses, std::uint64_t shift) {
    std::vector<Access> result(accesses.begin(), accesses.end());
    for (Access& access : result) {
      access.tensor = TensorId(access.tensor.value() + shift);
    }
    return result;
  }
  /// Numbers of any length.
  std::uint64_t draw() { return std::uint64_t{dice_.roll(~std::size_t{0})} >> dice_.roll(63); }
  TensorId draw_tensor() { return TensorId(dice_.roll(9) == 0 ? draw() : dice_.roll(20)); }
  OpStart draw_start() {
    return {.key = OpKey(dice_.roll(5)),
            .stream = static_cast<std::uint32_t>(dice_.roll(1)),
            .phase = static_cast<Phase>(dice_.roll(3)),
            .replay = static_cast<Replay>(dice_.roll(2)),
            .wish = static_cast<Wish>(dice_.roll(3))};
  }
  std::vector<Access> draw_accesses() {
    std::vector<Access> accesses(dice_.roll(4));
    for (Access& access : accesses) {
      access = {draw_tensor(),
                dice_.roll(3) == 0 ? draw() : 100,
                static_cast<AccessKind>(dice_.roll(2)),
                static_cast<unsigned char>(dice_.roll(3) == 0 ? dice_.roll(255) : 1)};
    }
    return accesses;
  }

  const unsigned seed_ = support::seed_of(GetParam());
  support::Dice dice_{seed_};
};

TEST_P(TraceCodecRandomTest, WhatWasEncodedComesBack) {
  for (int round = 0; round < 20; ++round) {
    TraceArchive archive;
    for (int i = 0; i < 4; ++i) {
      archive.steps.push_back(draw_step());
      archive.steps.push_back(draw_like(archive.steps.back()));
      archive.steps.push_back(draw_like(archive.steps.front()));
    }
    ASSERT_EQ(decode(encode(archive)), archive);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TraceCodecRandomTest, testing::Range(1U, 21U));

}  // namespace
}  // namespace headwater
