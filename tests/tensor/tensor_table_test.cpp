#include "headwater/tensor/tensor_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <random>

namespace headwater {
namespace {

class TensorTableTest : public testing::Test {
 protected:
  Tensor& make(std::uint64_t id) {
    tensors_.emplace_back().id = TensorId(id);
    return tensors_.back();
  }

  TensorTable table_;

 private:
  std::deque<Tensor> tensors_;
};

TEST_F(TensorTableTest, AnEmptyTableFindsNothing) {
  EXPECT_EQ(table_.find(TensorId(1)), nullptr);
  EXPECT_FALSE(table_.remove(TensorId(1)));
  EXPECT_TRUE(table_.empty());
}

TEST_F(TensorTableTest, ATensorIsFoundUntilItIsRemoved) {
  Tensor& tensor = make(7);
  table_.add(tensor);
  table_.add(tensor);
  EXPECT_EQ(table_.size(), 1U);
  EXPECT_EQ(table_.find(TensorId(7)), &tensor);
  EXPECT_TRUE(table_.remove(TensorId(7)));
  EXPECT_EQ(table_.find(TensorId(7)), nullptr);
}

TEST_F(TensorTableTest, TensorsThatPointToTheSameSlotAreToldApart) {
  constexpr std::uint64_t kApart = 1 << 20;  // a multiple of any number of slots there may be
  Tensor& first = make(3);
  Tensor& second = make(3 + kApart);
  Tensor& third = make(3 + 2 * kApart);
  for (Tensor* tensor : {&first, &second, &third}) {
    table_.add(*tensor);
  }
  EXPECT_TRUE(table_.remove(first.id));
  EXPECT_EQ(table_.find(first.id), nullptr);
  EXPECT_EQ(table_.find(second.id), &second);
  EXPECT_EQ(table_.find(third.id), &third);
}

TEST_F(TensorTableTest, AClearedTableIsEmptyAndServesOn) {
  Tensor& tensor = make(5);
  table_.add(tensor);
  table_.clear();
  EXPECT_EQ(table_.find(tensor.id), nullptr);
  table_.add(tensor);
  EXPECT_EQ(table_.find(tensor.id), &tensor);
}

TEST_F(TensorTableTest, ItAgreesWithAMapWhateverComesAndGoes) {
  constexpr std::uint64_t kIds = 6000;
  std::mt19937 random(1);
  std::map<std::uint64_t, Tensor*> expected;
  for (int i = 0; i < 40'000; ++i) {
    const std::uint64_t id = random() % kIds + 1;
    if (const auto known = expected.find(id); known != expected.end()) {
      EXPECT_TRUE(table_.remove(TensorId(id)));
      expected.erase(known);
    } else {
      table_.add(*expected.emplace(id, &make(id)).first->second);
    }
  }
  EXPECT_EQ(table_.size(), expected.size());
  for (std::uint64_t id = 1; id <= kIds; ++id) {
    const auto known = expected.find(id);
    EXPECT_EQ(table_.find(TensorId(id)), known == expected.end() ? nullptr : known->second);
  }
}

}  // namespace
}  // namespace headwater
