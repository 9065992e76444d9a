#include "headwater/device/disk/file_descriptor.h"

#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace headwater::disk {

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    close();
    native_ = std::exchange(other.native_, kNone);
  }
  return *this;
}

void FileDescriptor::close() noexcept {
  if (native_ != kNone) {
    ::close(native_);
  }
}

FileDescriptor try_open_nameless(const std::string& folder) {
  // O_EXCL keeps anyone from giving it a name later.
  return FileDescriptor(::open(folder.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
}

FileDescriptor try_open_unlinked(const std::string& folder) {
  std::string path = folder + "/headwater-XXXXXX";
  FileDescriptor file(::mkostemp(path.data(), O_CLOEXEC));
  if (file && ::unlink(path.c_str()) != 0) {
    return {};
  }
  return file;
}

}  // namespace headwater::disk
