#pragma once

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace headwater::adapter {

/// The numbers a generator was about to draw.
///
/// Note [States of generators]: one of a GPU keeps its state in an object that can be exchanged for
/// another. To set the state itself, though to what it is, has the RNNs of cuDNN draw a new seed,
/// as after manual_seed(): one number more than without us. Others have their state set.
struct RandomState {
  at::Generator generator;
  at::Generator holder;             // of one of a GPU: another that has that state
  std::vector<std::uint8_t> state;  // of others; not a tensor: that would count towards a budget
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
  /// In products, convolutions and RNNs of CUDA and of oneDNN.
  std::array<at::Float32Precision, 6> precisions{};
  at::ScalarType default_type = at::kFloat;
  unsigned denormals = 0;  // how the processor treats them on this thread

  static Settings now();
  void put_in_force() const;

  bool operator==(const Settings&) const = default;
};

RandomState random_state(at::Generator generator);

/// Puts settings and generators as they were at another time, and back at the end. For one thread.
class AsItWas {
 public:
  /// REQUIRES: `random` outlives it.
  AsItWas(const Settings& settings, const std::optional<RandomState>& random);
  ~AsItWas();
  AsItWas(const AsItWas&) = delete;
  AsItWas& operator=(const AsItWas&) = delete;
  AsItWas(AsItWas&&) = delete;
  AsItWas& operator=(AsItWas&&) = delete;

  /// Whether the one that lives on the calling thread, if any, has put back a generator.
  static bool has_generator();
  /// Puts that back once more: the operator begins again, and may have drawn before it failed.
  static void draw_again();

 private:
  const Settings settings_;
  const std::optional<RandomState>& then_;
  std::optional<RandomState> random_;  // to be put back at the end
  const AsItWas* const outer_;
};

}  // namespace headwater::adapter
