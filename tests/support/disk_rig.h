#pragma once

#include "headwater/base/bytes.h"
#include "headwater/base/log.h"
#include "headwater/device/disk/io_queue.h"
#include "headwater/device/disk/store_file.h"
#include "headwater/memory/budget.h"
#include "support/faulty_io_queue.h"
#include "support/temporary_folder.h"

#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace headwater::support {

/// A small store file with a queue that can go wrong, and what was logged.
struct DiskRig {
  explicit DiskRig(disk::StoreOptions options = {}, const disk::IoOptions& io = {})
      : file(with_folder(std::move(options), folder), log),
        inner(disk::make_io_queue(io, log)),
        queue(*inner) {}

  static disk::StoreOptions with_folder(disk::StoreOptions options, const TemporaryFolder& folder) {
    options.folder = folder.path();
    options.margin_bytes = 0;
    return options;
  }

  TemporaryFolder folder;
  std::vector<std::string> messages;
  Log log{LogLevel::kError,
          [this](LogLevel, std::string_view text) { messages.emplace_back(text); }};
  disk::StoreFile file;
  std::unique_ptr<disk::IoQueue> inner;
  FaultyIoQueue queue;
  Budget budget{std::size_t{16} << 20};
};

inline std::vector<std::byte> random_bytes(std::size_t size, unsigned seed) {
  std::minstd_rand random(seed + 1);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(random());
  }
  return bytes;
}

}  // namespace headwater::support
