#pragma once

#include <string>
#include <utility>

namespace headwater::disk {

/// An open file, closed when destroyed. Move-only.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int native) : native_(native) {}
  FileDescriptor(FileDescriptor&& other) noexcept : native_(std::exchange(other.native_, kNone)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { close(); }

  int native() const { return native_; }
  explicit operator bool() const { return native_ != kNone; }

 private:
  static constexpr int kNone = -1;

  void close() noexcept;

  int native_ = kNone;
};

/// A new file in `folder` that never has a name. Empty with errno set where that fails.
[[nodiscard]] FileDescriptor try_open_nameless(const std::string& folder);

/// A new file in `folder` whose name is removed at once, for file systems that need one. Empty with
/// errno set where that fails.
[[nodiscard]] FileDescriptor try_open_unlinked(const std::string& folder);

}  // namespace headwater::disk
