#pragma once

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace headwater::adapter {

/// The numbers a generator was about to draw. Not a tensor: that would count towards a budget.
struct RandomState {
  at::Generator generator;
  std::vector<std::uint8_t> state;
};

/// Settings outside of the arguments that decide what an operator computes.
struct Settings {
  bool deterministic = false;
  bool deterministic_warn_only = false;
  bool cudnn = true;
  bool cudnn_benchmark = false;
  bool cudnn_deterministic = false;
  bool mkldnn = true;
  int num_threads = 1;
  at::Float32MatmulPrecision precision = at::Float32MatmulPrecision::HIGHEST;
  at::ScalarType default_type = at::kFloat;
  unsigned denormals = 0;  // how the processor treats them on this thread

  static Settings now();
  void put_in_force() const;

  bool operator==(const Settings&) const = default;
};

RandomState random_state(at::Generator generator);

/// Puts settings and generators as they were at another time, and back at the end.
class AsItWas {
 public:
  AsItWas(const Settings& settings, const std::optional<RandomState>& random);
  ~AsItWas();
  AsItWas(const AsItWas&) = delete;
  AsItWas& operator=(const AsItWas&) = delete;
  AsItWas(AsItWas&&) = delete;
  AsItWas& operator=(AsItWas&&) = delete;

 private:
  const Settings settings_;
  std::optional<RandomState> random_;
};

}  // namespace headwater::adapter
