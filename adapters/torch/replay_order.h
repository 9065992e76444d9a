#pragma once

#include "lineage.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace headwater::adapter {

/// A storage that has to be made for others or comes back.
struct ToMake {
  std::shared_ptr<Origin> origin;
  std::vector<Writer> writers;
  std::uint64_t num_writes = 0;
  bool comes_back = false;      // else it has been freed, and goes after its last reader
  std::size_t last_reader = 0;  // its place in the order
};

/// What has to be made so that all of `wanted` are back: they, and what they are made of where that
/// has been given up or freed. Each once, in the order they were written in, as plans count it.
/// Called with the cache's mutex held.
std::vector<ToMake> replay_order(std::span<const std::shared_ptr<Origin>> wanted);

}  // namespace headwater::adapter
