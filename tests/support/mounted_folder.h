#pragma once

#include "support/temporary_folder.h"

#include <filesystem>
#include <string>
#include <sys/mount.h>

namespace headwater::support {

/// A small file system of its own kind, where the user of this process may mount one.
///
///   tmpfs with size=4m   becomes full
///   ramfs                refuses direct I/O, sets no space aside, takes none back, keeps no count
class MountedFolder {
 public:
  MountedFolder(const std::string& kind, const std::string& options)
      : mounted_(::mount("none", path().c_str(), kind.c_str(), 0, options.c_str()) == 0) {}
  ~MountedFolder() {
    if (mounted_) {
      ::umount2(path().c_str(), MNT_DETACH);
    }
  }
  MountedFolder(const MountedFolder&) = delete;
  MountedFolder& operator=(const MountedFolder&) = delete;

  bool mounted() const { return mounted_; }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  bool mounted_;
};

}  // namespace headwater::support
