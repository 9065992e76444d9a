#include "headwater/offload/leaving_tensors.h"

#include <gtest/gtest.h>

#include <vector>

namespace headwater {
namespace {

Tensor tensor_like(std::uint64_t id, Residency residency, std::uint64_t copy_number) {
  Tensor tensor;
  tensor.id = TensorId(id);
  tensor.bytes = id;
  tensor.residency = residency;
  tensor.copy_number = copy_number;
  tensor.replayable = Replayable::kByPlan;
  return tensor;
}

TEST(LeavingTensorsTest, GoInTheOrderInWhichNobodyHasToWait) {
  LeavingTensors leaving;
  Tensor being_copied = tensor_like(1, Residency::kWritingBack, 9);
  Tensor next_copied = tensor_like(2, Residency::kWritingBack, 10);
  Tensor made_late = tensor_like(4, Residency::kDevice, 0);
  Tensor made_early = tensor_like(3, Residency::kDevice, 0);
  Tensor copied = tensor_like(5, Residency::kBoth, 7);
  for (Tensor* tensor : {&next_copied, &being_copied, &made_late, &made_early, &copied}) {
    leaving.add(*tensor);
    leaving.check_invariants();
  }
  EXPECT_EQ(leaving.bytes(), 15U);
  std::vector<TensorId> order;
  while (Tensor* tensor = leaving.first()) {
    order.push_back(tensor->id);
    leaving.remove(*tensor);
    leaving.check_invariants();
  }
  EXPECT_EQ(order, (std::vector{TensorId(5), TensorId(3), TensorId(4), TensorId(1), TensorId(2)}));
  EXPECT_EQ(leaving.bytes(), 0U);
}

TEST(LeavingTensorsTest, AreFoundAgainWhenTheirCopyIsForgotten) {
  LeavingTensors leaving;
  Tensor tensor = tensor_like(8, Residency::kBoth, 1);
  leaving.add(tensor);
  tensor.residency = Residency::kDevice;
  tensor.copy_number = 2;
  leaving.check_invariants();
  leaving.remove(tensor);
  EXPECT_EQ(leaving.first(), nullptr);
  EXPECT_EQ(leaving.bytes(), 0U);
}

TEST(LeavingTensorsTest, CountOneThatIsAddedTwiceOnce) {
  LeavingTensors leaving;
  Tensor tensor = tensor_like(8, Residency::kBoth, 1);
  leaving.add(tensor);
  leaving.add(tensor);
  EXPECT_EQ(leaving.bytes(), 8U);
  leaving.remove(tensor);
  leaving.remove(tensor);
  EXPECT_EQ(leaving.bytes(), 0U);
  EXPECT_EQ(leaving.first(), nullptr);
}

}  // namespace
}  // namespace headwater
