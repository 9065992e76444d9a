#include "headwater/base/bytes.h"
#include "headwater/device/sim/sim_host_memory.h"
#include "headwater/memory/host_pool.h"
#include "support/counting_host_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

struct Sizes {
  std::string name;
  std::size_t least = 0;
  std::size_t most = 0;
  int num_layers = 0;
};

/// Trainings whose tensors are all stored: state that stays, activations that come and go, and
/// gradients that take their place. Nothing is written, so no page is touched.
class HostPoolFootprintTest : public testing::TestWithParam<Sizes> {
 protected:
  static constexpr int kActivationsALayer = 3;

  HostPoolFootprintTest() {
    for (int i = 0; i < GetParam().num_layers; ++i) {
      parameters_.push_back(draw() / 4);
      state_.push_back(store(2 * parameters_.back()));
      for (int k = 0; k < kActivationsALayer; ++k) {
        activations_.push_back(draw());
      }
    }
  }

  /// All sizes are as likely, on a logarithmic scale.
  std::size_t draw() {
    std::uniform_real_distribution<double> scale(std::log(GetParam().least),
                                                 std::log(GetParam().most));
    return static_cast<std::size_t>(std::exp(scale(random_)));
  }

  void draw_anew() {
    for (std::size_t& bytes : activations_) {
      bytes = draw();
    }
  }

  HostBlock store(std::size_t bytes) {
    HostBlock block = pool_.try_gather(bytes);
    EXPECT_TRUE(block);
    EXPECT_LE(block.parts().size(), HostPool::kMostParts + 1);
    num_parts_ += block.parts().size();
    ++num_blocks_;
    expect_exact();
    return block;
  }

  void expect_exact() {
    const auto stored = static_cast<double>(pool_.peak_block_bytes());
    const auto held = static_cast<double>(pool_.slab_bytes_held());
    ASSERT_LE(held, 1.02 * stored + HostPool::kLeastSlabBytes) << "stored " << stored << " bytes";
    if (stored >= 256_MiB) {
      worst_ = std::max(worst_, held / stored);
    }
  }

  void step() {
    std::vector<HostBlock> activations;
    std::vector<HostBlock> gradients;
    for (const std::size_t bytes : activations_) {
      activations.push_back(store(bytes));
    }
    for (const std::size_t bytes : parameters_) {
      activations.resize(activations.size() - kActivationsALayer);
      gradients.push_back(store(bytes));
    }
    gradients.clear();
    pool_.end_step();
    pool_.check_invariants();
  }

  void tell() const {
    std::cout << GetParam().name << ": stored " << format_bytes(pool_.peak_block_bytes())
              << ", slabs at most " << worst_ << " times that, "
              << static_cast<double>(num_parts_) / static_cast<double>(num_blocks_)
              << " parts a block, " << counting_.num_asked() << " slabs made\n";
  }

  std::mt19937 random_{7};
  sim::HostMemory memory_{std::size_t{1} << 40};
  support::CountingHostMemory counting_{memory_};
  HostPool pool_{counting_, std::size_t{1} << 40, 64_MiB};
  std::vector<std::size_t> parameters_;
  std::vector<std::size_t> activations_;
  std::vector<HostBlock> state_;
  std::size_t num_parts_ = 0;
  std::size_t num_blocks_ = 0;
  double worst_ = 0;
};

TEST_P(HostPoolFootprintTest, StepsThatRepeatMakeNoSlabsAfterTheFirst) {
  step();
  const std::size_t made = counting_.num_asked();
  for (int i = 0; i < 12; ++i) {
    step();
  }
  tell();
  EXPECT_EQ(counting_.num_asked(), made);
  EXPECT_EQ(counting_.num_freed(), 0U);
  EXPECT_LE(worst_, 1.02);
}

TEST_P(HostPoolFootprintTest, StepsThatDifferHoldNoMoreThanTheLargestNeeds) {
  for (int i = 0; i < 16; ++i) {
    draw_anew();
    step();
  }
  tell();
  EXPECT_LE(worst_, 1.02);
}

TEST_P(HostPoolFootprintTest, AStoreThatShrinksGivesItsSlabsBackAfterAFewSteps) {
  step();
  const std::size_t held = pool_.slab_bytes_held();
  activations_.resize(activations_.size() / 4);
  parameters_.resize(parameters_.size() / 4);
  for (std::size_t i = 0; i + 1 < PeakWindow::kSteps; ++i) {
    step();
    EXPECT_EQ(pool_.slab_bytes_held(), held);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    step();
  }
  EXPECT_LT(pool_.slab_bytes_held(), held);
}

INSTANTIATE_TEST_SUITE_P(
    Trainings,
    HostPoolFootprintTest,
    testing::Values(Sizes{"FromFourKilobytesToHalfAGigabyte", 4_KiB, 512_MiB, 60},
                    Sizes{"AllAboveHalfASlab", 33_MiB, 63_MiB, 40},
                    Sizes{"AllOfAboutAMegabyte", 700_KiB, 3_MiB, 400},
                    Sizes{"AllSmall", 4_KiB, 256_KiB, 5000}),
    [](const auto& training) { return training.param.name; });

}  // namespace
}  // namespace headwater
