#include "as_it_was.h"

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace headwater::adapter {
namespace {

/// Counts up; of a GPU that need not be there. Like CUDAGeneratorImpl it keeps its state in an
/// object that can be exchanged, and notes when it has been seeded.
class Counting final : public c10::GeneratorImpl {
 public:
  explicit Counting(std::shared_ptr<std::uint64_t> next)
      : GeneratorImpl(c10::Device(c10::kCUDA, 0), c10::DispatchKeySet(c10::DispatchKey::CUDA)),
        next_(std::move(next)) {}

  std::uint64_t draw() { return (*next_)++; }
  bool seeded() const { return seeded_; }
  const std::uint64_t* address() const { return next_.get(); }

  void set_current_seed(std::uint64_t seed) override {
    *next_ = seed;
    seeded_ = true;
  }
  void set_offset(std::uint64_t /*offset*/) override { seeded_ = true; }
  std::uint64_t get_offset() const override { return 0; }
  std::uint64_t current_seed() const override { return 0; }
  std::uint64_t seed() override { return 0; }
  void set_state(const c10::TensorImpl& /*state*/) override { seeded_ = true; }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return {}; }
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& other) override {
    next_ = static_cast<const Counting&>(*other).next_;
  }
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override {
    return c10::make_intrusive<Counting>(next_);
  }

 private:
  Counting* clone_impl() const override {
    return new Counting(std::make_shared<std::uint64_t>(*next_));
  }

  std::shared_ptr<std::uint64_t> next_;
  bool seeded_ = false;
};

class AsItWasTest : public testing::Test {
 protected:
  AsItWasTest()
      : generator_(at::make_generator<Counting>(std::make_shared<std::uint64_t>(7))),
        counting_(*generator_.get<Counting>()) {}

  at::Generator generator_;
  Counting& counting_;
};

TEST_F(AsItWasTest, TheStateOfAGpusGeneratorIsExchangedAndGivenBack) {
  const std::optional<RandomState> then = random_state(generator_);
  const std::uint64_t* const own = counting_.address();
  EXPECT_EQ(counting_.draw(), 7U);
  for (int replay = 0; replay < 2; ++replay) {
    const AsItWas as_it_was(Settings::now(), then);
    EXPECT_NE(counting_.address(), own);
    EXPECT_EQ(counting_.draw(), 7U);
  }
  EXPECT_EQ(counting_.address(), own);
  EXPECT_EQ(counting_.draw(), 8U);
  EXPECT_FALSE(counting_.seeded());
}

TEST_F(AsItWasTest, WhatHasBeenDrawnIsDrawnAgainWhereTheOperatorBeginsAgain) {
  const std::optional<RandomState> then = random_state(generator_);
  EXPECT_FALSE(AsItWas::has_generator());
  {
    const AsItWas as_it_was(Settings::now(), then);
    EXPECT_TRUE(AsItWas::has_generator());
    EXPECT_EQ(counting_.draw(), 7U);
    {
      const std::optional<RandomState> nothing;
      const AsItWas inner(Settings::now(), nothing);
      EXPECT_FALSE(AsItWas::has_generator());
    }
    AsItWas::draw_again();
    EXPECT_EQ(counting_.draw(), 7U);
  }
  EXPECT_FALSE(AsItWas::has_generator());
}

}  // namespace
}  // namespace headwater::adapter
