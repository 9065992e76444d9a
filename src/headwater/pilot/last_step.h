#pragma once

#include "headwater/pilot/predictor.h"
#include "headwater/trace/step_follower.h"

#include <vector>

namespace headwater {

/// Expects the rest of the step to go as in the one before.
class LastStep final : public Predictor {
 public:
  /// REQUIRES: the follower outlives this; its owner tells it the operators.
  explicit LastStep(const StepFollower& follower) : follower_(follower) {}

  /// Tensors that the step has yet to make are left out: nobody can fetch them.
  void predict(const Lookahead& lookahead, std::vector<Coming>& coming) const override;

 private:
  const StepFollower& follower_;
};

}  // namespace headwater
