#include "headwater/trace/trace_file.h"

#include "headwater/base/error.h"
#include "support/synthetic_training.h"
#include "support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>

namespace headwater {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Files of this process can have no more than so many bytes while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

class TraceFileTest : public testing::Test {
 protected:
  static TraceArchive archive_of(unsigned seed) {
    support::SyntheticTraining training({.seed = seed});
    TraceArchive archive;
    archive.steps = {training.next_step(), training.next_step()};
    return archive;
  }

  support::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "steps.hwt";
  TraceArchive archive_ = archive_of(1);
};

TEST_F(TraceFileTest, WhatWasSavedIsLoaded) {
  save_traces(path_, archive_);
  EXPECT_EQ(load_traces(path_), archive_);
  EXPECT_EQ(folder_.num_entries(), 1U);
}

TEST_F(TraceFileTest, SavingReplacesAFile) {
  save_traces(path_, archive_);
  const TraceArchive other = archive_of(2);
  save_traces(path_, other);
  EXPECT_EQ(load_traces(path_), other);
  EXPECT_EQ(folder_.num_entries(), 1U);
}

TEST_F(TraceFileTest, WhatAKilledProcessLeftDoesNotHinder) {
  const std::string left = path_.string() + ".unfinished-0";
  std::ofstream(left) << "half a file";
  save_traces(path_, archive_);
  EXPECT_EQ(load_traces(path_), archive_);
  EXPECT_EQ(std::filesystem::file_size(left), 11U);
}

TEST_F(TraceFileTest, AFolderThatIsNotThereIsToldWithTheSystemsText) {
  const std::filesystem::path path = folder_.path() / "none" / "steps.hwt";
  EXPECT_EQ(message_of([&] { save_traces(path, archive_); }),
            "Trace file cannot be put there. Give a name in a folder that exists and can be "
            "written: " +
                path.string() + ", No such file or directory");
}

TEST_F(TraceFileTest, ANameThatIsTakenByAFolderLeavesNothingBehind) {
  std::filesystem::create_directory(path_);
  EXPECT_THAT(message_of([&] { save_traces(path_, archive_); }),
              AllOf(StartsWith("Trace file cannot be put there. "), EndsWith("Is a directory")));
  EXPECT_EQ(folder_.num_entries(), 1U);
}

TEST_F(TraceFileTest, AWriteThatFailsLeavesTheOldFileAndNothingElse) {
  save_traces(path_, archive_);
  {
    const FileSizeLimit limit(100);
    EXPECT_EQ(message_of([&] { save_traces(path_, archive_of(2)); }),
              "Trace file cannot be written. Check the disk behind it: " + path_.string() +
                  ", File too large");
  }
  EXPECT_EQ(load_traces(path_), archive_);
  EXPECT_EQ(folder_.num_entries(), 1U);
}

TEST_F(TraceFileTest, TracesThatCannotBeEncodedTouchNoFile) {
  archive_.steps[0].accesses.emplace_back();
  EXPECT_THROW(save_traces(path_, archive_), InvalidArgument);
  EXPECT_EQ(folder_.num_entries(), 0U);
}

TEST_F(TraceFileTest, AFileThatIsNotThereIsTold) {
  EXPECT_THAT(message_of([&] { load_traces(path_); }),
              AllOf(StartsWith("Trace file cannot be read. "),
                    HasSubstr(path_.string() + ", No such file or directory")));
}

TEST_F(TraceFileTest, WhatIsNotARegularFileIsNotRead) {
  EXPECT_THAT(message_of([&] { load_traces(folder_.path()); }),
              HasSubstr("it is not a regular file"));
  EXPECT_THAT(message_of([] { load_traces("/dev/zero"); }), HasSubstr("it is not a regular file"));
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(message_of([&] { load_traces(path_); }), HasSubstr("it is not a regular file"));
}

TEST_F(TraceFileTest, ADamagedFileIsToldByNameAndByte) {
  save_traces(path_, archive_);
  std::filesystem::resize_file(path_, 100);
  EXPECT_THAT(message_of([&] { load_traces(path_); }),
              AllOf(StartsWith("Trace file ends early. "),
                    HasSubstr("the section at byte "),
                    EndsWith(", file " + path_.string())));
}

TEST_F(TraceFileTest, AHugeFileOfAnotherKindIsNotReadIntoMemory) {
  std::ofstream(path_) << "something else";
  std::filesystem::resize_file(path_, std::uintmax_t{1} << 40);
  EXPECT_THAT(message_of([&] { load_traces(path_); }), StartsWith("Not a trace file. "));
}

}  // namespace
}  // namespace headwater
