#include "headwater/plan/replay/replay_choice.h"

namespace headwater {

std::string to_string(const ReplayChoice& choice) {
  std::string text;
  for (const GivenUp& away : choice.tensors) {
    text += std::to_string(away.tensor) + ": " + std::to_string(away.given_up) + " to " +
            std::to_string(away.back) + '\n';
  }
  text += "recipes";
  for (const Position position : choice.recipes) {
    text += ' ' + std::to_string(position);
  }
  return text + ", " + std::to_string(choice.num_runs) + " runs, " +
         std::to_string(choice.extra_ns) + " ns\n";
}

}  // namespace headwater
