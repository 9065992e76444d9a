#include "headwater/device/disk/file_descriptor.h"

#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace headwater::disk {
namespace {

nlink_t num_names(const FileDescriptor& file) {
  struct stat state {};
  EXPECT_EQ(::fstat(file.native(), &state), 0);
  return state.st_nlink;
}

TEST(FileDescriptorTest, ClosesItsFileWhenDestroyed) {
  int native = -1;
  {
    const FileDescriptor file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    native = file.native();
    ASSERT_TRUE(file);
  }
  EXPECT_EQ(::fcntl(native, F_GETFD), -1);
}

TEST(FileDescriptorTest, MovingHandsTheFileOver) {
  FileDescriptor first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int native = first.native();
  FileDescriptor second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move)
  first = std::move(second);
  EXPECT_EQ(first.native(), native);
}

TEST(FileDescriptorTest, AFileThatNeverHadANameIsNotInTheFolder) {
  const support::TemporaryFolder folder;
  const FileDescriptor file = try_open_nameless(folder.path());
  if (!file && errno == EOPNOTSUPP) {
    GTEST_SKIP() << "the file system has no files without names";
  }
  ASSERT_TRUE(file);
  EXPECT_EQ(num_names(file), 0U);
  EXPECT_EQ(folder.num_entries(), 0U);
}

TEST(FileDescriptorTest, AFileThatHadANameIsNotInTheFolderEither) {
  const support::TemporaryFolder folder;
  const FileDescriptor file = try_open_unlinked(folder.path());
  ASSERT_TRUE(file);
  EXPECT_EQ(num_names(file), 0U);
  EXPECT_EQ(folder.num_entries(), 0U);
}

TEST(FileDescriptorTest, AFolderThatIsNotThereGivesNoFile) {
  const support::TemporaryFolder folder;
  EXPECT_FALSE(try_open_nameless(folder.path() / "absent"));
  EXPECT_FALSE(try_open_unlinked(folder.path() / "absent"));
}

}  // namespace
}  // namespace headwater::disk
