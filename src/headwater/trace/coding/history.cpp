#include "headwater/trace/coding/history.h"

#include <utility>

namespace headwater::coding {

void History::keep(PastStep step) {
  last_step = step.image.step;
  past.push_front(std::move(step));
  if (past.size() > kNumKept) {
    past.pop_back();
  }
}

}  // namespace headwater::coding
