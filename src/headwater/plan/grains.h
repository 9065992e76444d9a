#pragma once

#include "headwater/trace/liveness.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headwater {

struct GrainLimits {
  std::size_t max_bytes = 0;  // of the working set of several operators
  Position max_grains = 1;    // aimed at; large operators are never joined to keep it

  bool operator==(const GrainLimits&) const = default;
};

/// A tensor that a grain touches. Grains are numbered from zero; -1 and num_grains() are outside.
struct GrainTouch {
  std::size_t bytes = 0;
  std::int32_t previous = -1;  // the grain that touched it before
  std::int32_t next = 0;       // the grain that touches it after
  bool arrives = false;        // it exists before the grain

  bool operator==(const GrainTouch&) const = default;
};

/// A step as runs of operators that a partition does not cut. A step that is short enough has one
/// operator a grain.
class Grains {
 public:
  Grains(const Liveness& liveness, const GrainLimits& limits);

  std::int32_t size() const { return static_cast<std::int32_t>(workspaces_.size()); }
  /// Of the grain's first operator; of size(), the number of operators.
  Position begin(std::int32_t grain) const { return begins_[index(grain)]; }
  std::size_t workspace_bytes(std::int32_t grain) const { return workspaces_[index(grain)]; }
  std::span<const GrainTouch> touches(std::int32_t grain) const;

 private:
  /// A tensor's latest touch: by which grain, and its place in touches_.
  struct LatestTouch {
    std::int32_t grain = -1;
    std::size_t place = 0;
  };
  using Latest = std::vector<LatestTouch>;

  static std::size_t index(std::int32_t grain) { return static_cast<std::size_t>(grain); }
  void cut(const Liveness& liveness, const GrainLimits& limits);
  void collect(const Liveness& liveness);
  void add(GrainTouch touch, std::int32_t grain, LatestTouch& latest);

  std::vector<Position> begins_;
  std::vector<std::size_t> workspaces_;
  std::vector<GrainTouch> touches_;
  std::vector<std::size_t> first_touch_;
};

}  // namespace headwater
