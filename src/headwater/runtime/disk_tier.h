#pragma once

#include "headwater/base/log.h"
#include "headwater/device/disk/io_queue.h"
#include "headwater/device/disk/store_file.h"
#include "headwater/memory/budget.h"
#include "headwater/memory/disk_pool.h"
#include "headwater/runtime/options.h"

#include <memory>

namespace headwater {

/// The parts of the disk tier, wired in construction order. Thread-safe.
class DiskTier {
 public:
  /// Null where the options name no folder. Throws InvalidArgument on a folder that cannot be used
  /// and on a disk budget that is 0 or stands alone, DiskError where I/O fails.
  static std::unique_ptr<DiskTier> create(const Options& options, const Log& log);

  DiskPool& pool() { return pool_; }

 private:
  DiskTier(const Options& options, const Log& log);

  disk::StoreFile file_;
  std::unique_ptr<disk::IoQueue> queue_;
  Budget budget_;
  DiskPool pool_;
};

}  // namespace headwater
