#include "headwater/device/host/free_memory.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace headwater::host {
namespace {

namespace fs = std::filesystem;

/// How one version of control groups names things.
struct Layout {
  std::string_view mount;
  std::vector<std::string_view> limits;  // the least counts
  std::string_view used;
  std::string_view droppable;  // in memory.stat
};

/// A number of bytes; none where the file is missing or says that there is no limit.
std::optional<std::size_t> read_number(const fs::path& file) {
  std::ifstream in(file);
  std::uint64_t number = 0;
  return in >> number ? std::optional<std::size_t>(number) : std::nullopt;
}

/// The number after a name, as in "inactive_file 4096" or "MemAvailable: 4096 kB".
std::optional<std::size_t> read_entry(const fs::path& file, std::string_view name) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string word;
    std::uint64_t number = 0;
    if (words >> word && word == name && words >> number) {
      return number;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> left_in_group(const fs::path& group, const Layout& layout) {
  std::optional<std::size_t> limit;
  for (const std::string_view name : layout.limits) {
    if (const std::optional<std::size_t> found = read_number(group / name)) {
      limit = std::min(limit.value_or(*found), *found);
    }
  }
  const std::optional<std::size_t> used = read_number(group / layout.used);
  if (!limit || !used) {
    return std::nullopt;
  }
  const std::size_t droppable = read_entry(group / "memory.stat", layout.droppable).value_or(0);
  const std::size_t needed = *used - std::min(*used, droppable);
  return *limit - std::min(*limit, needed);
}

/// The least that is left in a group and in those around it. Where the process sees only a part of
/// the tree its own group is at the top, whatever its path says.
void add_groups(const fs::path& mount,
                fs::path group,
                const Layout& layout,
                std::vector<std::size_t>& left) {
  for (;;) {
    if (const std::optional<std::size_t> found = left_in_group(mount / group, layout)) {
      left.push_back(*found);
    }
    if (group.empty()) {
      return;
    }
    group = group.parent_path();
  }
}

/// Lines are "0::/path" in version 2 and "4:cpu,memory:/path" in version 1.
void add_line(const fs::path& root, const std::string& line, std::vector<std::size_t>& left) {
  const Layout first{.mount = "sys/fs/cgroup/memory",
                     .limits = {"memory.limit_in_bytes"},
                     .used = "memory.usage_in_bytes",
                     .droppable = "total_inactive_file"};
  const Layout second{.mount = "sys/fs/cgroup",
                      .limits = {"memory.max", "memory.high"},
                      .used = "memory.current",
                      .droppable = "inactive_file"};
  const std::size_t colon = line.find(':');
  const std::size_t slash = line.find(":/", colon + 1);
  if (colon == std::string::npos || slash == std::string::npos) {
    return;
  }
  const std::string controllers = "," + line.substr(colon + 1, slash - colon - 1) + ",";
  const fs::path group = line.substr(slash + 2);
  if (controllers == ",,") {
    add_groups(root / second.mount, group, second, left);
  } else if (controllers.find(",memory,") != std::string::npos) {
    add_groups(root / first.mount, group, first, left);
  }
}

}  // namespace

std::optional<std::size_t> free_memory(const fs::path& root) {
  std::vector<std::size_t> left;
  if (const auto kibibytes = read_entry(root / "proc/meminfo", "MemAvailable:")) {
    left.push_back(*kibibytes * 1024);
  }
  std::ifstream groups(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    add_line(root, line, left);
  }
  const auto least = std::min_element(left.begin(), left.end());
  return least == left.end() ? std::nullopt : std::optional<std::size_t>(*least);
}

}  // namespace headwater::host
