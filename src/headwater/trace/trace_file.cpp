#include "headwater/trace/trace_file.h"

#include "headwater/base/error.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <span>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace headwater {
namespace {

// Unfinished files of one name that killed processes can leave before no name is free.
constexpr int kMostTries = 1000;

std::string text_of(int error) {
  return std::generic_category().message(error);
}

[[noreturn]] void fail_to_put(const std::string& path, int error) {
  throw InvalidArgument(
      "Trace file cannot be put there. Give a name in a folder that exists and can be written: " +
      path + ", " + text_of(error));
}

[[noreturn]] void fail_to_write(const std::string& path, int error) {
  throw Error("Trace file cannot be written. Check the disk behind it: " + path + ", " +
              text_of(error));
}

[[noreturn]] void fail_to_read(const std::string& path, const std::string& reason) {
  throw InvalidArgument("Trace file cannot be read. Give one that exists and may be read: " + path +
                        ", " + reason);
}

/// An open file, closed when destroyed.
class OpenFile {
 public:
  // Who else may read it is the user's choice (umask), which mkstemp() would not ask.
  OpenFile(const std::string& path, int flags)
      : native_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  OpenFile(OpenFile&& other) noexcept : native_(std::exchange(other.native_, -1)) {}
  OpenFile& operator=(OpenFile&&) = delete;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (native_ >= 0) {
      ::close(native_);
    }
  }

  int native() const { return native_; }
  explicit operator bool() const { return native_ >= 0; }

 private:
  int native_;
};

/// A new file beside the one that it becomes, and gone unless it does.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(std::string path) : path_(std::move(path)), file_(make()) {}
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  ~UnfinishedFile() {
    if (!finished_) {
      ::unlink(name_.c_str());
    }
  }

  void write(std::span<const std::byte> bytes);
  void finish();

 private:
  OpenFile make();

  const std::string path_;
  std::string name_;  // given by make()
  const OpenFile file_;
  bool finished_ = false;
};

OpenFile UnfinishedFile::make() {
  int error = EEXIST;
  for (int i = 0; i < kMostTries && error == EEXIST; ++i) {
    name_ = path_ + ".unfinished-" + std::to_string(i);
    if (OpenFile made(name_, O_WRONLY | O_CREAT | O_EXCL); made) {
      return made;
    }
    error = errno;
  }
  fail_to_put(path_, error);
}

void UnfinishedFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.native(), bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) {
      fail_to_write(path_, errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
}

void UnfinishedFile::finish() {
  // A file system may rename before it writes; after a power failure the file would be empty.
  if (::fsync(file_.native()) != 0) {
    fail_to_write(path_, errno);
  }
  if (std::rename(name_.c_str(), path_.c_str()) != 0) {
    fail_to_put(path_, errno);
  }
  // Somebody else may have the name by now.
  finished_ = true;
}

// Fewer bytes than there is room for at the end of the file only.
std::size_t read_some(const OpenFile& file, std::span<std::byte> room, const std::string& path) {
  std::size_t done = 0;
  while (done < room.size()) {
    const ssize_t count = ::read(file.native(), room.data() + done, room.size() - done);
    if (count < 0 && errno != EINTR) {
      fail_to_read(path, text_of(errno));
    }
    if (count == 0) {
      break;
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  return done;
}

// What is no file, such as a pipe, might never end.
std::size_t size_of(const OpenFile& file, const std::string& path) {
  struct stat state {};
  if (::fstat(file.native(), &state) != 0) {
    fail_to_read(path, text_of(errno));
  }
  if (!S_ISREG(state.st_mode)) {
    fail_to_read(path, "it is not a regular file");
  }
  return static_cast<std::size_t>(state.st_size);
}

std::vector<std::byte> read_all(const std::string& path) {
  const OpenFile file(path, O_RDONLY | O_NONBLOCK);
  if (!file) {
    fail_to_read(path, text_of(errno));
  }
  std::vector<std::byte> bytes(std::min(size_of(file, path), kTraceStartBytes));
  bytes.resize(read_some(file, bytes, path));
  // A large file that is something else takes no memory.
  check_trace_start(bytes);
  bytes.resize(size_of(file, path));
  const std::size_t count = read_some(file, std::span(bytes).subspan(kTraceStartBytes), path);
  bytes.resize(kTraceStartBytes + count);
  return bytes;
}

}  // namespace

void save_traces(const std::filesystem::path& path, const TraceArchive& archive) {
  const std::vector<std::byte> bytes = encode(archive);
  UnfinishedFile file(path.string());
  file.write(bytes);
  file.finish();
}

TraceArchive load_traces(const std::filesystem::path& path) {
  try {
    return decode(read_all(path.string()));
  } catch (const InvalidArgument& fault) {
    throw InvalidArgument(std::string(fault.what()) + ", file " + path.string());
  }
}

}  // namespace headwater
