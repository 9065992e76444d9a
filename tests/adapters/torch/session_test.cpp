#include "headwater/base/bytes.h"
#include "headwater/base/error.h"
#include "headwater/torch.h"
#include "out_of_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <torch/version.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace headwater {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

/// A tensor of that many bytes, all elements equal.
at::Tensor filled(std::size_t bytes, float value) {
  return torch::full({static_cast<std::int64_t>(bytes / sizeof(float))}, value);
}

/// Uses up the budget, so that everything unpinned and older is offloaded.
void press(std::size_t bytes) {
  filled(bytes, 0.0F).add_(1.0F);
}

/// Parameters of a small model after a few steps, trained in the session that is open, if any.
std::vector<at::Tensor> train() {
  torch::manual_seed(7);
  torch::nn::Sequential model(torch::nn::Linear(64, 96),
                              torch::nn::ReLU(),
                              torch::nn::BatchNorm1d(96),
                              torch::nn::Linear(96, 64),
                              torch::nn::Dropout(0.1),
                              torch::nn::Linear(64, 8));
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3));
  for (int step = 0; step < 4; ++step) {
    const at::Tensor input = torch::randn({48, 64});
    const at::Tensor target = torch::randint(8, {48});
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(model->forward(input), target).backward();
    optimizer.step();
  }
  std::vector<at::Tensor> state = model->parameters();
  const std::vector<at::Tensor> buffers = model->buffers();
  state.insert(state.end(), buffers.begin(), buffers.end());
  return state;
}

void expect_equal(const std::vector<at::Tensor>& left, const std::vector<at::Tensor>& right) {
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_TRUE(torch::equal(left[i], right[i])) << "element " << i;
  }
}

class SessionTest : public testing::Test {
 protected:
  static SessionOptions cpu(std::size_t budget) { return {.budget = budget, .device = "cpu"}; }

  /// Every test leaves no session behind.
  void TearDown() override { const Session session(cpu(1_MiB)); }
};

TEST_F(SessionTest, OneSessionAtATime) {
  Session first(cpu(1_MiB));
  EXPECT_THROW(Session second(cpu(1_MiB)), Error);
  first.close();
  Session second(cpu(2_MiB));
  EXPECT_EQ(second.stats().budget_bytes, 2_MiB);
}

TEST_F(SessionTest, ClosingTwiceIsClosingOnce) {
  const at::Tensor kept = filled(64_KiB, 3.0F);
  Session session(cpu(64_KiB));
  press(64_KiB);
  session.close();
  session.close();
  EXPECT_EQ(kept.data_ptr<float>()[100], 3.0F);
}

TEST_F(SessionTest, UnusableOptionsAreRefused) {
  EXPECT_THROW(Session({.budget = 1_MiB, .device = "toaster"}), InvalidArgument);
  EXPECT_THROW(Session({.budget = 1_MiB, .device = "meta"}), InvalidArgument);
  EXPECT_THROW(Session({.budget = std::size_t{1} << 60, .device = "cpu"}), InvalidArgument);
  EXPECT_THROW(Session({.budget = 0, .device = "cpu"}), InvalidArgument);
}

TEST_F(SessionTest, ABudgetThatWouldNotOpenASessionDoesNotChangeOne) {
  Session session(cpu(1_MiB));
  EXPECT_THROW(session.set_budget(0), InvalidArgument);
  EXPECT_THROW(session.set_budget(std::size_t{1} << 60), InvalidArgument);
  EXPECT_EQ(session.stats().budget_bytes, 1_MiB);
}

TEST_F(SessionTest, TheBudgetCanBecomeTheMinimum) {
  Session session(cpu(64_KiB));
  EXPECT_THROW(filled(128_KiB, 1.0F), c10::OutOfMemoryError);
  session.set_budget(Options::kMinimum);
  EXPECT_EQ(filled(128_KiB, 1.0F).sum().item<float>(), 32768.0F);
}

TEST_F(SessionTest, TensorsFromBeforeAreManagedFromTheirFirstUse) {
  const at::Tensor old = filled(64_KiB, 2.0F);
  Session session(cpu(1_MiB));
  EXPECT_EQ(session.stats().num_tensors, 0U);
  const at::Tensor result = old + 1;
  EXPECT_EQ(session.stats().num_tensors, 2U);
  EXPECT_EQ(session.stats().resident_bytes, 128_KiB);
}

TEST_F(SessionTest, FreedTensorsGiveTheirBytesBack) {
  Session session(cpu(1_MiB));
  { const at::Tensor gone = filled(64_KiB, 1.0F).add_(1); }
  EXPECT_EQ(session.stats().num_tensors, 0U);
  EXPECT_EQ(session.stats().resident_bytes, 0U);
  EXPECT_EQ(session.stats().peak_bytes, 64_KiB);
}

TEST_F(SessionTest, AnAddressIsNotGivenOutWhileTheBytesAreAway) {
  Session session(cpu(64_KiB));
  const at::Tensor away = filled(64_KiB, 1.0F);
  press(64_KiB);
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
  EXPECT_THROW(static_cast<void>(away.const_data_ptr()), c10::Error);
#else  // PyTorch cannot take a refusal back yet
  EXPECT_EQ(away.const_data_ptr(), nullptr);
#endif
  EXPECT_EQ(away.sum().item<float>(), 16384.0F);
}

TEST_F(SessionTest, AnOperatorThatDoesNotFitThrowsAndTheProgramGoesOn) {
  Session session(cpu(64_KiB));
  const at::Tensor small = filled(32_KiB, 2.0F);
  EXPECT_THROW(filled(128_KiB, 1.0F), c10::OutOfMemoryError);
  EXPECT_THROW(small.repeat({3}), c10::OutOfMemoryError);
  EXPECT_EQ(session.stats().pinned_bytes, 0U);
  EXPECT_EQ((small + 1).sum().item<float>(), 3.0F * 8192);
  session.set_budget(256_KiB);
  EXPECT_EQ(filled(128_KiB, 1.0F).sum().item<float>(), 32768.0F);
}

/// Runs work that must be refused and says what the refusal said.
std::optional<Shortage> shortage_of(const std::function<void()>& work) {
  const auto usual = adapter::throw_out_of_memory.exchange(
      [](const OutOfMemory& error) { throw OutOfMemory(error); });
  std::optional<Shortage> shortage;
  try {
    work();
  } catch (const OutOfMemory& error) {
    shortage = error.shortage();
  }
  adapter::throw_out_of_memory.store(usual);
  return shortage;
}

TEST_F(SessionTest, TheSmallestBudgetOfARefusedOperatorSuffices) {
  Session session(cpu(64_KiB));
  const at::Tensor tensor = filled(48_KiB, 2.0F);
  const auto twice = [&tensor] { static_cast<void>(tensor * tensor); };
  const std::optional<Shortage> shortage = shortage_of(twice);
  ASSERT_TRUE(shortage);
  EXPECT_EQ(shortage->op, "aten::mul");
  EXPECT_EQ(shortage->working_set, 96_KiB);
  EXPECT_EQ(shortage->smallest_budget, 96_KiB);
  session.set_budget(96_KiB);
  EXPECT_FALSE(shortage_of(twice));
}

TEST_F(SessionTest, AFailingOperatorLeavesNothingPinned) {
  Session session(cpu(256_KiB));
  const at::Tensor left = torch::ones({64, 64});
  const at::Tensor right = torch::ones({32, 64});
  EXPECT_THROW(torch::mm(left, right), c10::Error);
  EXPECT_THROW(left.index_select(0, torch::full({2000}, 99)), c10::Error);
  EXPECT_EQ(session.stats().pinned_bytes, 0U);
  EXPECT_EQ(torch::mm(left, right.t()).sum().item<float>(), 64.0F * 32 * 64);
}

TEST_F(SessionTest, ViewsFollowTheBytesOfTheirBase) {
  Session session(cpu(64_KiB));
  at::Tensor base = filled(64_KiB, 1.0F);
  at::Tensor view = base.view({128, 128}).slice(0, 0, 64).t();
  press(64_KiB);
  view.add_(1);
  press(64_KiB);
  EXPECT_EQ(base.sum().item<float>(), 16384.0F + 8192.0F);
  EXPECT_EQ(view.sum().item<float>(), 2 * 8192.0F);
  EXPECT_EQ(session.stats().num_tensors, 1U);
}

TEST_F(SessionTest, WritesInPlaceAreNotLostByOffloading) {
  Session session(cpu(64_KiB));
  const at::Tensor counter = filled(64_KiB, 0.0F);
  for (int i = 0; i < 5; ++i) {
    counter.add_(1);
    press(64_KiB);
    EXPECT_EQ(counter.sum().item<float>(), 16384.0F * static_cast<float>(i + 1));
    press(64_KiB);
  }
}

TEST_F(SessionTest, AResizedTensorKeepsItsElements) {
  Session session(cpu(256_KiB));
  const at::Tensor tensor = filled(64_KiB, 5.0F);
  press(256_KiB);
  tensor.resize_({32768});
  press(256_KiB);
  EXPECT_EQ(tensor.narrow(0, 0, 16384).sum().item<float>(), 5 * 16384.0F);
  EXPECT_EQ(session.stats().num_tensors, 1U);
  EXPECT_EQ(session.stats().managed_bytes, 128_KiB);
}

TEST_F(SessionTest, ATensorSetToAnotherStorageShowsItsBytes) {
  Session session(cpu(128_KiB));
  at::Tensor tensor = filled(64_KiB, 1.0F);
  const at::Tensor source = filled(64_KiB, 2.0F);
  press(128_KiB);
  tensor.set_(source);
  press(128_KiB);
  EXPECT_EQ(tensor.sum().item<float>(), 2 * 16384.0F);
  tensor.add_(1);
  press(128_KiB);
  EXPECT_EQ(source.sum().item<float>(), 3 * 16384.0F);
  EXPECT_EQ(session.stats().num_tensors, 1U);
}

TEST_F(SessionTest, MemoryOfOthersIsLeftWhereItIs) {
  std::vector<float> others(16384, 4.0F);
  Session session(cpu(64_KiB));
  const at::Tensor blob = torch::from_blob(others.data(), {16384});
  blob.add_(1);
  press(64_KiB);
  EXPECT_EQ(blob.data_ptr(), others.data());
  EXPECT_EQ(others[5], 5.0F);
  EXPECT_EQ(session.stats().unmanaged_bytes, 64_KiB);
}

TEST_F(SessionTest, AHoldKeepsTheAddress) {
  Session session(cpu(128_KiB));
  const at::Tensor held = filled(64_KiB, 1.0F);
  press(128_KiB);
  Hold hold = session.hold(held);
  auto* const address = held.data_ptr<float>();
  press(64_KiB);
  address[0] = 9.0F;
  EXPECT_EQ(held.data_ptr<float>(), address);
  EXPECT_EQ(session.stats().pinned_bytes, 64_KiB);
  hold.release();
  press(128_KiB);
  EXPECT_EQ(held[0].item<float>(), 9.0F);
  EXPECT_EQ(session.stats().pinned_bytes, 0U);
}

TEST_F(SessionTest, AHoldMayOutliveItsSession) {
  const at::Tensor held = filled(64_KiB, 1.0F);
  Hold hold;
  {
    Session session(cpu(128_KiB));
    hold = session.hold(held);
  }
  EXPECT_EQ(held.sum().item<float>(), 16384.0F);
}

TEST_F(SessionTest, LoweringTheBudgetOffloadsAtOnce) {
  Session session(cpu(256_KiB));
  const at::Tensor first = filled(64_KiB, 1.0F);
  const at::Tensor second = filled(64_KiB, 2.0F);
  session.set_budget(64_KiB);
  EXPECT_LE(session.stats().resident_bytes, 64_KiB);
  session.set_budget(256_KiB);
  EXPECT_EQ((first + second).sum().item<float>(), 3 * 16384.0F);
}

TEST_F(SessionTest, ASessionCannotBeClosedInsideABackwardPass) {
  Session session(cpu(1_MiB));
  const at::Tensor tensor = filled(64_KiB, 1.0F).requires_grad_();
  tensor.register_hook([&session](const at::Tensor&) { EXPECT_THROW(session.close(), Error); });
  (tensor * 2).sum().backward();
  EXPECT_EQ(tensor.grad().sum().item<float>(), 2 * 16384.0F);
}

TEST_F(SessionTest, ThreadsShareTheBudget) {
  Session session(cpu(512_KiB));
  const at::Tensor shared = filled(32_KiB, 1.0F);
  std::vector<float> sums(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      threads.emplace_back([&, i] {
        Session::attach_thread();
        at::Tensor own = filled(32_KiB, 0.0F);
        for (int step = 0; step < 50; ++step) {
          own.add_(shared + static_cast<double>(i));
        }
        sums[i] = own.sum().item<float>();
      });
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(sums[i], 8192.0F * 50.0F * static_cast<float>(1 + i));
  }
  EXPECT_LE(session.stats().peak_bytes, 512_KiB);
}

TEST_F(SessionTest, SessionsOpenAndCloseWhileOthersCompute) {
  std::atomic<bool> stop{false};
  const at::Tensor one = filled(16_KiB, 1.0F);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      Session::attach_thread();
      at::Tensor sum = torch::zeros_like(one);
      float steps = 0;
      while (!stop) {
        sum = sum + one.clone();
        ++steps;
      }
      EXPECT_EQ(sum.sum().item<float>(), steps * 4096);
    });
  }
  for (int i = 0; i < 50; ++i) {
    Session session(cpu(i % 2 == 0 ? Options::kMinimum : 512_KiB));
    EXPECT_EQ((one + 1).sum().item<float>(), 2 * 4096.0F);
  }
  stop = true;
}

TEST(SessionDeathTest, AThreadMayAttachBeforeTheFirstSession) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Session::attach_thread();
        std::exit(torch::ones({8}).sum().item<float>() == 8.0F ? 0 : 1);
      },
      testing::ExitedWithCode(0),
      "");
}

TEST_F(SessionTest, ListsAreUpdatedInPiecesThatFit) {
  std::vector<at::Tensor> expected;
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 8; ++i) {
    expected.push_back(filled(32_KiB, static_cast<float>(i)));
    tensors.push_back(filled(32_KiB, static_cast<float>(i)));
  }
  at::_foreach_add_(expected, expected, 0.5);
  at::_foreach_add_(expected, expected, 0.5);
  Session session(cpu(96_KiB));
  at::_foreach_add_(tensors, tensors, 0.5);
  session.reset_peak_stats();  // tensors from before the session are charged as they are found
  at::_foreach_add_(tensors, tensors, 0.5);
  EXPECT_EQ(session.stats().num_chunked_ops, 2U);
  EXPECT_LE(session.stats().peak_bytes, 96_KiB);
  session.close();
  expect_equal(tensors, expected);
}

TEST_F(SessionTest, ResultsOfAListInPiecesComeInOrder) {
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 6; ++i) {
    tensors.push_back(filled(32_KiB, static_cast<float>(i)));
  }
  const std::vector<double> factors{1, 2, 3, 4, 5, 6};
  const std::vector<c10::Scalar> scalars(factors.begin(), factors.end());
  const std::vector<at::Tensor> expected = at::_foreach_mul(tensors, scalars);
  Session session(cpu(96_KiB));
  const std::vector<at::Tensor> results = at::_foreach_mul(tensors, scalars);
  EXPECT_EQ(session.stats().num_chunked_ops, 1U);
  session.close();
  expect_equal(results, expected);
}

/// The lists a fused optimizer works on.
struct AdamLists {
  AdamLists() {
    torch::manual_seed(3);
    for (int i = 0; i < 6; ++i) {
      parameters.push_back(torch::randn({4096}));
      gradients.push_back(torch::randn({4096}));
      means.push_back(torch::zeros({4096}));
      squares.push_back(torch::zeros({4096}));
      steps.push_back(torch::ones({}));
    }
  }
  void update() {
    at::_fused_adamw_(
        parameters, gradients, means, squares, {}, steps, 0.01, 0.9, 0.99, 0.1, 1e-8, false, false);
  }
  std::vector<at::Tensor> parameters, gradients, means, squares, steps;
};

TEST_F(SessionTest, AFusedOptimizerWorksInPieces) {
  AdamLists expected;
  AdamLists lists;
  for (int step = 0; step < 3; ++step) {
    expected.update();
  }
  Session session(cpu(160_KiB));
  lists.update();
  session.reset_peak_stats();  // tensors from before the session are charged as they are found
  lists.update();
  lists.update();
  EXPECT_EQ(session.stats().num_chunked_ops, 3U);
  EXPECT_LE(session.stats().peak_bytes, 160_KiB);
  session.close();
  expect_equal(lists.parameters, expected.parameters);
  expect_equal(lists.squares, expected.squares);
}

class SessionTrainingTest : public testing::TestWithParam<std::size_t> {};

TEST_P(SessionTrainingTest, TrainingGivesTheSameBits) {
  const std::vector<at::Tensor> expected = train();
  Session session({.budget = GetParam(), .device = "cpu", .min_tensor_bytes = 256});
  const std::vector<at::Tensor> trained = train();
  const SessionStats stats = session.stats();
  session.close();
  expect_equal(trained, expected);
  EXPECT_GT(stats.moves.num_offloads, 0U);
  EXPECT_EQ(stats.pinned_bytes, 0U);
  if (GetParam() != Options::kMinimum) {
    EXPECT_LE(stats.peak_bytes, GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Budgets,
                         SessionTrainingTest,
                         testing::Values(Options::kMinimum, 112_KiB, 128_KiB, 192_KiB));

}  // namespace
}  // namespace headwater
