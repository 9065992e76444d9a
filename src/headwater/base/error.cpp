#include "headwater/base/error.h"

#include "headwater/base/bytes.h"

#include <utility>

namespace headwater {
namespace {

// Below this, a printed count is exact by itself.
constexpr std::size_t kFirstRounded = 1024;

// Rounded for people, exact for whoever sets the next budget.
std::string describe(std::size_t bytes) {
  if (bytes < kFirstRounded) {
    return format_bytes(bytes);
  }
  return format_bytes(bytes) + " (" + std::to_string(bytes) + " bytes)";
}

std::string message_of(const Shortage& shortage) {
  const std::string who = shortage.op.empty() ? "request" : "operator";
  return "Out of memory: " + who + " does not fit the budget. Raise the budget or release holds: " +
         (shortage.op.empty() ? "" : "op " + shortage.op + ", ") + "working set " +
         describe(shortage.working_set) + ", budget " + describe(shortage.budget) +
         ", pinned by others " + describe(shortage.pinned) + ", smallest budget that would do " +
         describe(shortage.smallest_budget) + (shortage.note.empty() ? "" : ", " + shortage.note);
}

}  // namespace

OutOfMemory::OutOfMemory(Shortage shortage)
    : Error(message_of(shortage)), shortage_(std::move(shortage)) {}

}  // namespace headwater
