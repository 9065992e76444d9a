#include "headwater/device/host/free_memory.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

// Reads with the C library: a process that has loaded a framework may have found the C++ library's
// streams and paths elsewhere than here, built by another compiler.

namespace headwater::host {
namespace {

/// How one version of control groups names things.
struct Layout {
  std::string_view mount;
  std::vector<std::string_view> limits;  // the least counts
  std::string_view used;
  std::string_view droppable;  // in memory.stat
};

std::string joined(std::string_view folder, std::string_view name) {
  return std::string(folder).append("/").append(name);
}

/// What a file of the system says; empty where it is missing.
std::string read_text(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  std::string text;
  std::vector<char> part(4096);
  while (file != nullptr) {
    const std::size_t read = std::fread(part.data(), 1, part.size(), file.get());
    if (read == 0) {
      break;
    }
    text.append(part.data(), read);
  }
  return text;
}

/// Takes the text up to the mark off its front, and the mark.
std::string_view take_until(char mark, std::string_view& text) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

/// The number a text begins with, after blanks; none where it begins with another word, as in
/// "max".
std::optional<std::size_t> number_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

/// The number after a name, as in "inactive_file 4096" or "MemAvailable: 4096 kB".
std::optional<std::size_t> read_entry(const std::string& path, std::string_view name) {
  const std::string text = read_text(path);
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = take_until('\n', rest);
    if (take_until(' ', line) == name) {
      return number_in(line);
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> left_in_group(const std::string& group, const Layout& layout) {
  std::optional<std::size_t> limit;
  for (const std::string_view name : layout.limits) {
    if (const std::optional<std::size_t> found = number_in(read_text(joined(group, name)))) {
      limit = std::min(limit.value_or(*found), *found);
    }
  }
  const std::optional<std::size_t> used = number_in(read_text(joined(group, layout.used)));
  if (!limit || !used) {
    return std::nullopt;
  }
  const std::size_t droppable =
      read_entry(joined(group, "memory.stat"), layout.droppable).value_or(0);
  const std::size_t needed = *used - std::min(*used, droppable);
  return *limit - std::min(*limit, needed);
}

/// The least that is left in a group and in those around it. Where the process sees only a part of
/// the tree its own group is at the top, whatever its path says.
void add_groups(const std::string& root,
                std::string_view group,
                const Layout& layout,
                std::vector<std::size_t>& left) {
  const std::string mount = joined(root, layout.mount);
  for (;;) {
    if (const auto found = left_in_group(mount + std::string(group), layout)) {
      left.push_back(*found);
    }
    if (group.empty()) {
      return;
    }
    group = group.substr(0, group.rfind('/'));
  }
}

/// Lines are "0::/path" in version 2 and "4:cpu,memory:/path" in version 1.
void add_line(const std::string& root, std::string_view line, std::vector<std::size_t>& left) {
  const Layout first{.mount = "sys/fs/cgroup/memory",
                     .limits = {"memory.limit_in_bytes"},
                     .used = "memory.usage_in_bytes",
                     .droppable = "total_inactive_file"};
  const Layout second{.mount = "sys/fs/cgroup",
                      .limits = {"memory.max", "memory.high"},
                      .used = "memory.current",
                      .droppable = "inactive_file"};
  take_until(':', line);
  const std::string controllers = "," + std::string(take_until(':', line)) + ",";
  if (!line.starts_with('/')) {
    return;
  }
  if (controllers == ",,") {
    add_groups(root, line, second, left);
  } else if (controllers.find(",memory,") != std::string::npos) {
    add_groups(root, line, first, left);
  }
}

}  // namespace

std::optional<std::size_t> free_memory(const std::string& root) {
  std::vector<std::size_t> left;
  if (const auto kibibytes = read_entry(joined(root, "proc/meminfo"), "MemAvailable:")) {
    left.push_back(*kibibytes * 1024);
  }
  const std::string groups = read_text(joined(root, "proc/self/cgroup"));
  for (std::string_view rest = groups; !rest.empty();) {
    add_line(root, take_until('\n', rest), left);
  }
  const auto least = std::min_element(left.begin(), left.end());
  return least == left.end() ? std::nullopt : std::optional(*least);
}

}  // namespace headwater::host
