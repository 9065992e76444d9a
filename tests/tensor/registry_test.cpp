#include "headwater/tensor/registry.h"

#include "headwater/base/error.h"
#include "headwater/device/sim/sim_host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace headwater {
namespace {

using testing::ElementsAre;

constexpr std::size_t kBytes = 100;

class RegistryTest : public testing::Test {
 protected:
  Tensor& create() {
    Buffer buffer(bytes_.data(), kBytes, nullptr, [](void*) {});
    return registry_.create(std::move(buffer), budget_.reserve_beyond(kBytes), this, StreamRef(3));
  }

  void write_back(Tensor& tensor) {
    registry_.apply(tensor, ResidencyEvent::kWriteBackBegins);
    tensor.host = pool_.try_allocate(tensor.bytes);
    registry_.apply(tensor, ResidencyEvent::kWriteBackEnds);
  }

  void offload(Tensor& tensor) {
    write_back(tensor);
    registry_.apply(tensor, ResidencyEvent::kDrop);
    tensor.device = Buffer();
    tensor.charge.release();
  }

  void release(Tensor& tensor) {
    tensor.device = Buffer();
    tensor.charge.release();
    tensor.host.release();
    registry_.apply(tensor, ResidencyEvent::kRelease);
  }

  std::vector<TensorId> resident() const {
    std::vector<TensorId> ids;
    for (const Tensor& tensor : registry_.resident()) {
      ids.push_back(tensor.id);
    }
    return ids;
  }

  std::array<std::byte, kBytes> bytes_{};
  Budget budget_{1000};
  sim::HostMemory memory_{4096};
  HostPool pool_{memory_, 4096, 1024};
  Registry registry_;
};

TEST_F(RegistryTest, ANewTensorIsOnTheDeviceAndUnpinned) {
  const Tensor& tensor = create();
  EXPECT_EQ(tensor.residency, Residency::kDevice);
  EXPECT_EQ(tensor.bytes, kBytes);
  EXPECT_EQ(tensor.owner, this);
  EXPECT_EQ(tensor.num_pins, 0U);
  EXPECT_EQ(tensor.stream, StreamRef(3));
  EXPECT_EQ(tensor.home, StreamRef(3));
  EXPECT_EQ(tensor.charge.bytes(), kBytes);
  registry_.check_invariants();
}

TEST_F(RegistryTest, TensorsHaveIdsOfTheirOwn) {
  Tensor& first = create();
  const TensorId first_id = first.id;
  registry_.destroy(first);
  EXPECT_NE(create().id, first_id);
}

TEST_F(RegistryTest, ResidentTensorsStandInOrderOfUse) {
  Tensor& first = create();
  Tensor& second = create();
  Tensor& third = create();
  registry_.touch(first);
  EXPECT_THAT(resident(), ElementsAre(second.id, third.id, first.id));
  registry_.touch(first);
  registry_.touch(third);
  EXPECT_THAT(resident(), ElementsAre(second.id, first.id, third.id));
}

TEST_F(RegistryTest, AnOffloadedTensorIsAbsentAndComesBackAsTheNewest) {
  Tensor& first = create();
  Tensor& second = create();
  offload(first);
  EXPECT_THAT(resident(), ElementsAre(second.id));
  EXPECT_EQ(&registry_.absent().front(), &first);
  registry_.check_invariants();
  registry_.apply(first, ResidencyEvent::kFetchBegins);
  registry_.apply(first, ResidencyEvent::kFetchEnds);
  EXPECT_THAT(resident(), ElementsAre(second.id, first.id));
  EXPECT_TRUE(registry_.absent().empty());
}

TEST_F(RegistryTest, AWriteBackKeepsThePlaceInTheOrder) {
  Tensor& first = create();
  Tensor& second = create();
  write_back(first);
  EXPECT_THAT(resident(), ElementsAre(first.id, second.id));
  registry_.check_invariants();
}

TEST_F(RegistryTest, TouchingAnAbsentTensorChangesNothing) {
  Tensor& first = create();
  const Tensor& second = create();
  offload(first);
  registry_.touch(first);
  EXPECT_THAT(resident(), ElementsAre(second.id));
  registry_.check_invariants();
}

TEST_F(RegistryTest, CountsTensorsAndBytesWhereverTheyAre) {
  Tensor& first = create();
  create();
  offload(first);
  EXPECT_EQ(registry_.size(), 2U);
  EXPECT_EQ(registry_.bytes(), 2 * kBytes);
  registry_.destroy(first);
  EXPECT_EQ(registry_.size(), 1U);
  EXPECT_EQ(registry_.bytes(), kBytes);
  registry_.check_invariants();
}

TEST_F(RegistryTest, AReleasedTensorCountsNoMoreButStaysUntilDestroyed) {
  Tensor& tensor = create();
  tensor.num_pins = 1;
  release(tensor);
  EXPECT_EQ(registry_.size(), 0U);
  EXPECT_EQ(registry_.bytes(), 0U);
  EXPECT_EQ(registry_.num_released(), 1U);
  registry_.check_invariants();
  tensor.num_pins = 0;
  registry_.destroy(tensor);
  EXPECT_EQ(registry_.num_released(), 0U);
}

TEST_F(RegistryTest, APinnedTensorIsNotDestroyed) {
  Tensor& tensor = create();
  tensor.num_pins = 1;
  EXPECT_THROW(registry_.destroy(tensor), InternalError);
}

TEST_F(RegistryTest, AnEventOutsideTheTableChangesNothing) {
  const Tensor& other = create();
  Tensor& tensor = create();
  EXPECT_THROW(registry_.apply(tensor, ResidencyEvent::kDrop), InternalError);
  EXPECT_THAT(resident(), ElementsAre(other.id, tensor.id));
  registry_.check_invariants();
}

TEST_F(RegistryTest, InvariantsCatchAChargeThatWasLost) {
  create().charge.release();
  EXPECT_THROW(registry_.check_invariants(), InternalError);
}

TEST_F(RegistryTest, InvariantsCatchAHostCopyOfAWrittenTensor) {
  create().host = pool_.try_allocate(kBytes);
  EXPECT_THROW(registry_.check_invariants(), InternalError);
}

TEST_F(RegistryTest, InvariantsCatchAPinnedTensorThatIsAway) {
  Tensor& tensor = create();
  offload(tensor);
  tensor.num_pins = 1;
  EXPECT_THROW(registry_.check_invariants(), InternalError);
}

TEST_F(RegistryTest, InvariantsCatchAReleasedTensorNobodyPins) {
  release(create());
  EXPECT_THROW(registry_.check_invariants(), InternalError);
}

}  // namespace
}  // namespace headwater
