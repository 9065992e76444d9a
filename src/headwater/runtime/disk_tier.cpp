#include "headwater/runtime/disk_tier.h"

#include "headwater/base/bytes.h"
#include "headwater/base/error.h"

namespace headwater {

std::unique_ptr<DiskTier> DiskTier::create(const Options& options, const Log& log) {
  if (options.disk_budget == 0) {
    throw InvalidArgument("Disk budget is 0 bytes. Give at least 1 byte, or no disk folder");
  }
  if (!options.disk.empty()) {
    return std::unique_ptr<DiskTier>(new DiskTier(options, log));
  }
  if (options.disk_budget != Options::kUnlimited) {
    throw InvalidArgument(
        "Disk budget without a disk. Name a folder for the bytes in the option disk: budget " +
        format_bytes(options.disk_budget));
  }
  return nullptr;
}

namespace {

/// Who says how much may be used there has thought of others.
disk::StoreOptions store_options(const Options& options) {
  disk::StoreOptions store{.folder = options.disk};
  store.margin_bytes = options.disk_budget == Options::kUnlimited ? store.margin_bytes : 0;
  return store;
}

}  // namespace

DiskTier::DiskTier(const Options& options, const Log& log)
    : file_(store_options(options), log),
      queue_(disk::make_io_queue({}, log)),
      budget_(options.disk_budget),
      pool_(file_, *queue_, budget_, {}) {}

}  // namespace headwater
