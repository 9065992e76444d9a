#include "headwater/device/disk/store_file.h"

#include "headwater/base/bytes.h"
#include "headwater/base/error.h"
#include "support/mounted_folder.h"
#include "support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace headwater::disk {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;
using testing::HasSubstr;

class StoreFileTest : public testing::Test {
 protected:
  StoreOptions options() const { return {.folder = folder_.path(), .margin_bytes = 0}; }

  static std::size_t space_of(const StoreFile& file) {
    struct stat state {};
    EXPECT_EQ(::fstat(file.descriptor(), &state), 0);
    return static_cast<std::size_t>(state.st_blocks) * 512;
  }

  support::TemporaryFolder folder_;
  std::vector<std::string> messages_;
  Log log_{LogLevel::kWarning,
           [this](LogLevel, std::string_view text) { messages_.emplace_back(text); }};
};

TEST_F(StoreFileTest, LeavesNoNameInTheFolder) {
  const StoreFile file(options(), log_);
  EXPECT_EQ(folder_.num_entries(), 0U);
  file.check_invariants();
}

TEST_F(StoreFileTest, AFolderThatIsNotThereIsRefused) {
  StoreOptions absent = options();
  absent.folder += "/absent";
  EXPECT_THROW(StoreFile(absent, log_), InvalidArgument);
}

TEST_F(StoreFileTest, AlignmentsArePowersOfTwoUpToABlock) {
  const StoreFile file(options(), log_);
  const std::size_t block = file.block_bytes();
  const std::size_t memory = file.memory_alignment();
  EXPECT_GE(block, 4_KiB);
  EXPECT_EQ(block & (block - 1), 0U);
  EXPECT_EQ(block % memory, 0U);
}

TEST_F(StoreFileTest, SpaceIsThereBeforeAnythingIsWritten) {
  StoreFile file(options(), log_);
  ASSERT_TRUE(file.try_allocate({.offset = 1_MiB, .bytes = 4_MiB}));
  EXPECT_GE(space_of(file), 4_MiB);
  EXPECT_EQ(file.allocated_bytes(), 4_MiB);
  file.check_invariants();
}

TEST_F(StoreFileTest, FreedSpaceGoesBackToTheFileSystem) {
  StoreFile file(options(), log_);
  ASSERT_TRUE(file.try_allocate({.offset = 0, .bytes = 4_MiB}));
  ASSERT_TRUE(file.try_allocate({.offset = 4_MiB, .bytes = 4_MiB}));
  file.free({.offset = 0, .bytes = 4_MiB});
  EXPECT_LT(space_of(file), 5_MiB);
  EXPECT_EQ(file.allocated_bytes(), 4_MiB);
  file.check_invariants();
}

TEST_F(StoreFileTest, TheMarginIsLeftToOthers) {
  StoreOptions modest = options();
  modest.margin_bytes = SIZE_MAX;
  StoreFile file(modest, log_);
  EXPECT_FALSE(file.try_allocate({.offset = 0, .bytes = 1_MiB}));
  EXPECT_EQ(file.allocated_bytes(), 0U);
}

TEST_F(StoreFileTest, AFullDiskShowsWhenSpaceIsSetAside) {
  const support::MountedFolder small("tmpfs", "size=4m");
  if (!small.mounted()) {
    GTEST_SKIP() << "this user may not mount";
  }
  StoreFile file({.folder = small.path(), .margin_bytes = 0}, log_);
  EXPECT_FALSE(file.try_allocate({.offset = 0, .bytes = 8_MiB}));
  EXPECT_TRUE(file.try_allocate({.offset = 0, .bytes = 3_MiB}));
  EXPECT_FALSE(file.try_allocate({.offset = 3_MiB, .bytes = 2_MiB}));
  EXPECT_EQ(space_of(file), 3_MiB);
  file.check_invariants();
}

TEST_F(StoreFileTest, AFileSystemThatRefusesDirectAccessIsUsedThroughItsCacheWithOneWarning) {
  const support::MountedFolder odd("ramfs", "");
  if (!odd.mounted()) {
    GTEST_SKIP() << "this user may not mount";
  }
  StoreFile file({.folder = odd.path(), .margin_bytes = 0}, log_);
  EXPECT_EQ(file.access(), Access::kBuffered);
  EXPECT_TRUE(file.try_allocate({.offset = 0, .bytes = 1_MiB}));
  file.check_invariants();
  EXPECT_THAT(messages_, ElementsAre(HasSubstr("refuses direct I/O")));
}

TEST_F(StoreFileTest, SpaceThatCannotBeTakenBackIsToldOnce) {
  const support::MountedFolder odd("ramfs", "");
  if (!odd.mounted()) {
    GTEST_SKIP() << "this user may not mount";
  }
  StoreFile file({.folder = odd.path(), .margin_bytes = 0, .access = Access::kBuffered}, log_);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(file.try_allocate({.offset = 0, .bytes = 1_MiB}));
    file.free({.offset = 0, .bytes = 1_MiB});
  }
  EXPECT_THAT(messages_, ElementsAre(HasSubstr("cannot take back")));
}

TEST_F(StoreFileTest, BufferedAccessTakesAnyAddress) {
  StoreOptions buffered = options();
  buffered.access = Access::kBuffered;
  const StoreFile file(buffered, log_);
  EXPECT_EQ(file.access(), Access::kBuffered);
  EXPECT_EQ(file.memory_alignment(), 1U);
  EXPECT_TRUE(messages_.empty());
}

TEST_F(StoreFileTest, AForkedChildCannotTakeTheParentsSpaceAway) {
  StoreFile file(options(), log_);
  ASSERT_TRUE(file.try_allocate({.offset = 0, .bytes = 1_MiB}));
  const pid_t child = ::fork();
  if (child == 0) {
    file.free({.offset = 0, .bytes = 1_MiB});
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_GE(space_of(file), 1_MiB);
}

TEST_F(StoreFileTest, AKilledProcessLeavesNothingBehind) {
  int pipe[2] = {};
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    StoreFile file(options(), log_);
    const char ready = file.try_allocate({.offset = 0, .bytes = 4_MiB}) ? 'y' : 'n';
    (void)!::write(pipe[1], &ready, 1);
    ::pause();
  }
  char ready = 0;
  ASSERT_EQ(::read(pipe[0], &ready, 1), 1);
  EXPECT_EQ(ready, 'y');
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(folder_.num_entries(), 0U);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

}  // namespace
}  // namespace headwater::disk
