#include "headwater/base/bytes.h"
#include "headwater/memory/budget.h"

#include <cstdio>

// Uses inline and compiled parts of the installed core, and fails if either is wrong.
int main() {
  using namespace headwater::literals;
  headwater::Budget budget(headwater::parse_bytes("2MiB"));
  const auto reservation = budget.try_reserve(1_MiB);
  const bool right = reservation.has_value() && budget.available() == 1_MiB;
  std::printf("installed core: %s free of 2 MiB\n",
              headwater::format_bytes(budget.available()).c_str());
  return right ? 0 : 1;
}
