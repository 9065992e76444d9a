#include "headwater/device/host/free_memory.h"

#include "headwater/base/bytes.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace headwater::host {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

/// The files of a system with 8 GiB available, and the control groups that a test adds.
class FreeMemoryTest : public testing::Test {
 protected:
  FreeMemoryTest() {
    write("proc/meminfo", "MemTotal:  16777216 kB\nMemAvailable:    8388608 kB\nBuffers: 1 kB\n");
  }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  void write_group(const std::string& path, std::size_t limit, std::size_t used) {
    write("sys/fs/cgroup/" + path + "memory.max", std::to_string(limit) + "\n");
    write("sys/fs/cgroup/" + path + "memory.current", std::to_string(used) + "\n");
  }

  std::optional<std::size_t> free() const { return free_memory(folder_.path()); }

  support::TemporaryFolder folder_;
};

TEST_F(FreeMemoryTest, WithoutAGroupItIsWhatTheMachineHasAvailable) {
  EXPECT_EQ(free(), 8_GiB);
}

TEST_F(FreeMemoryTest, ASystemThatDoesNotTellGivesNone) {
  EXPECT_EQ(free_memory(folder_.path() / "nowhere"), std::nullopt);
}

TEST_F(FreeMemoryTest, AGroupLeavesItsLimitLessWhatItUses) {
  write("proc/self/cgroup", "0::/jobs/one\n");
  write_group("jobs/one/", 4_GiB, 1_GiB);
  EXPECT_EQ(free(), 3_GiB);
}

TEST_F(FreeMemoryTest, TheTightestOfTheGroupsAroundItCounts) {
  write("proc/self/cgroup", "0::/jobs/one\n");
  write_group("jobs/one/", 4_GiB, 1_GiB);
  write_group("jobs/", 6_GiB, 5_GiB);
  EXPECT_EQ(free(), 1_GiB);
}

TEST_F(FreeMemoryTest, InAContainerTheGroupIsAtTheTop) {
  write("proc/self/cgroup", "0::/\n");
  write_group("", 2_GiB, 512_MiB);
  EXPECT_EQ(free(), 2_GiB - 512_MiB);
}

TEST_F(FreeMemoryTest, AGroupWithoutALimitLeavesWhatTheMachineHas) {
  write("proc/self/cgroup", "0::/jobs\n");
  write_group("jobs/", 0, 1_GiB);
  write("sys/fs/cgroup/jobs/memory.max", "max\n");
  EXPECT_EQ(free(), 8_GiB);
}

TEST_F(FreeMemoryTest, WhereThrottlingBeginsIsALimitToo) {
  write("proc/self/cgroup", "0::/jobs\n");
  write_group("jobs/", 4_GiB, 1_GiB);
  write("sys/fs/cgroup/jobs/memory.high", std::to_string(3_GiB));
  EXPECT_EQ(free(), 2_GiB);
}

TEST_F(FreeMemoryTest, CachedFilesThatCanBeDroppedAreLeft) {
  write("proc/self/cgroup", "0::/jobs\n");
  write_group("jobs/", 4_GiB, 3_GiB);
  write("sys/fs/cgroup/jobs/memory.stat",
        "anon 5\nfile 7\ninactive_file " + std::to_string(1_GiB) + "\n");
  EXPECT_EQ(free(), 2_GiB);
}

TEST_F(FreeMemoryTest, AGroupThatUsesMoreThanItsLimitLeavesNothing) {
  write("proc/self/cgroup", "0::/jobs\n");
  write_group("jobs/", 1_GiB, 2_GiB);
  EXPECT_EQ(free(), 0U);
}

TEST_F(FreeMemoryTest, GroupsOfTheFirstVersionAreRead) {
  write("proc/self/cgroup", "9:cpu,cpuacct:/other\n4:hugetlb,memory:/box/one\n0::/\n");
  write("sys/fs/cgroup/memory/box/one/memory.limit_in_bytes", std::to_string(3_GiB));
  write("sys/fs/cgroup/memory/box/one/memory.usage_in_bytes", std::to_string(1_GiB));
  write("sys/fs/cgroup/memory/box/one/memory.stat",
        "total_inactive_file " + std::to_string(512_MiB) + "\n");
  EXPECT_EQ(free(), 2_GiB + 512_MiB);
}

TEST_F(FreeMemoryTest, TheFirstVersionWritesNoLimitAsALargeNumber) {
  write("proc/self/cgroup", "4:memory:/box\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(1_GiB));
  EXPECT_EQ(free(), 8_GiB);
}

TEST(FreeMemoryOfThisMachineTest, IsKnown) {
  EXPECT_GT(free_memory().value_or(0), 0U);
}

}  // namespace
}  // namespace headwater::host
