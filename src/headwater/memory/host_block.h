#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace headwater {

class HostPool;

/// Host bytes out of a HostPool, given back to it when destroyed: one range, or several parts that
/// follow each other. Move-only.
class HostBlock {
 public:
  using Part = std::span<std::byte>;

  HostBlock() = default;
  HostBlock(HostBlock&& other) noexcept;
  HostBlock& operator=(HostBlock&& other) noexcept;
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;
  ~HostBlock() { release(); }

  void release() noexcept;
  /// In the order of the bytes; their sizes add up to bytes().
  std::span<const Part> parts() const { return parts_; }
  /// Where the only part begins; null for an empty block. REQUIRES: there are not several.
  std::byte* data() const;
  std::size_t bytes() const { return bytes_; }
  explicit operator bool() const { return pool_ != nullptr; }

 private:
  friend class HostPool;  // the only maker of blocks
  HostBlock(HostPool& pool, std::vector<Part> parts, std::size_t bytes);

  HostPool* pool_ = nullptr;
  std::vector<Part> parts_;
  std::size_t bytes_ = 0;
};

}  // namespace headwater
