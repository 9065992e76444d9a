#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace headwater::host {

/// Bytes that this process can still take: what the machine has available, or what is left of a
/// limit on its control group (version 1 or 2) or on one around that, whichever is least. Cached
/// pages of files that the system can drop count as left. None where the system does not tell.
/// `root` is where its files are found.
std::optional<std::size_t> free_memory(const std::string& root = "");

}  // namespace headwater::host
