#include "noted_storages.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <vector>

namespace headwater::adapter {
namespace {

std::set<const c10::StorageImpl*> found(NotedStorages& noted) {
  std::set<const c10::StorageImpl*> storages;
  for (const auto& storage : noted.alive()) {
    EXPECT_TRUE(storages.insert(storage.get()).second);
  }
  return storages;
}

c10::StorageImpl& storage_of(const at::Tensor& tensor) {
  return *tensor.storage().unsafeGetStorageImpl();
}

TEST(NotedStoragesTest, FindsWhatIsAliveHoweverManyCameBetween) {
  NotedStorages noted;
  std::vector<at::Tensor> kept;
  std::set<const c10::StorageImpl*> expected;
  for (int i = 0; i < 1000; ++i) {
    const at::Tensor tensor = at::empty({4});
    noted.add(storage_of(tensor));
    if (i % 3 == 0) {
      kept.push_back(tensor);
      expected.insert(&storage_of(tensor));
    }
  }
  EXPECT_EQ(found(noted), expected);
  noted.add(storage_of(kept.front()));
  EXPECT_EQ(found(noted), expected);
}

TEST(NotedStoragesTest, KeepsNothingAlive) {
  NotedStorages noted;
  at::Tensor tensor = at::empty({4});
  noted.add(storage_of(tensor));
  EXPECT_EQ(tensor.storage().use_count(), 1U);
  tensor.reset();
  EXPECT_TRUE(noted.alive().empty());
}

TEST(NotedStoragesTest, ForgetsWhatIsFreedSoonAndSweepsTheRest) {
  NotedStorages noted;
  for (int round = 0; round < 20; ++round) {
    std::vector<at::Tensor> step;
    for (int i = 0; i < 500; ++i) {
      step.push_back(at::empty({4}));
      noted.add(storage_of(step.back()));
    }
    EXPECT_LE(noted.num_kept(), 1000U);
  }
  for (int i = 0; i < 2000; ++i) {
    noted.add(storage_of(at::empty({4})));
  }
  EXPECT_LE(noted.num_kept(), 1000U);
}

TEST(NotedStoragesTest, OneThatIsAddedAgainAndAgainDoesNotFillIt) {
  constexpr std::size_t kMost = (1 << 16) + 64;
  NotedStorages noted;
  const at::Tensor tensor = at::empty({4});
  for (int i = 0; i < 200'000; ++i) {
    noted.add(storage_of(tensor));
  }
  EXPECT_LE(noted.num_kept(), kMost);
  EXPECT_EQ(noted.alive().size(), 1U);
}

TEST(NotedStoragesTest, AreNoneAfterClearing) {
  NotedStorages noted;
  const at::Tensor tensor = at::empty({4});
  for (int i = 0; i < 100; ++i) {
    noted.add(storage_of(tensor));
  }
  noted.clear();
  EXPECT_EQ(noted.num_kept(), 0U);
  noted.add(storage_of(tensor));
  EXPECT_EQ(noted.alive().size(), 1U);
}

}  // namespace
}  // namespace headwater::adapter
