#pragma once

#include "headwater/base/id.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace headwater {

/// A tensor that is expected to be used.
struct Coming {
  TensorId tensor;
  std::size_t bytes = 0;

  bool operator==(const Coming&) const = default;
};

/// How far a prediction reaches.
struct Lookahead {
  std::size_t bytes = 0;       // of all predicted tensors together
  std::uint32_t num_ops = 64;  // operators, or what stands for them in the order at hand

  bool operator==(const Lookahead&) const = default;
};

/// Says which tensors will be used next. Predictions are hints: a wrong one costs time, never
/// correctness, and a tensor that is named may be gone when it is looked up. Implementations are
/// moved along the step by their owner. For one thread at a time.
class Predictor {
 public:
  Predictor() = default;
  virtual ~Predictor() = default;
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;
  Predictor(Predictor&&) = delete;
  Predictor& operator=(Predictor&&) = delete;

  /// Appends tensors in order of next use, each once and none that `coming` holds already, until
  /// one more would exceed the lookahead.
  virtual void predict(const Lookahead& lookahead, std::vector<Coming>& coming) const = 0;
};

/// Knows nothing: tensors are fetched when an operator asks for them.
class NoPrediction final : public Predictor {
 public:
  void predict(const Lookahead&, std::vector<Coming>&) const override {}
};

/// Asks one predictor after another; the later ones fill the lookahead that the earlier ones leave.
/// The usual order is the known one of backward, then the last step.
class Combined final : public Predictor {
 public:
  /// REQUIRES: the parts outlive this.
  explicit Combined(std::vector<const Predictor*> parts) : parts_(std::move(parts)) {}

  void predict(const Lookahead& lookahead, std::vector<Coming>& coming) const override;

 private:
  std::vector<const Predictor*> parts_;
};

}  // namespace headwater
