#pragma once

#include <sstream>
#include <string>

namespace headwater::detail {

[[noreturn]] void fail_check(const char* file, int line, const std::string& text);

template <class Left, class Right>
std::string compared(const char* text, const Left& left, const Right& right) {
  std::ostringstream out;
  out << text << ": " << left << " against " << right;
  return out.str();
}

}  // namespace headwater::detail

// Checks guard invariants, never user input: a failed one throws InternalError.
#define HEADWATER_CHECK(condition)                                     \
  do {                                                                 \
    if (!(condition)) {                                                \
      ::headwater::detail::fail_check(__FILE__, __LINE__, #condition); \
    }                                                                  \
  } while (false)

#define HEADWATER_CHECK_OP_(left, op, right)                               \
  do {                                                                     \
    const auto& headwater_left = (left);                                   \
    const auto& headwater_right = (right);                                 \
    if (!(headwater_left op headwater_right)) {                            \
      ::headwater::detail::fail_check(                                     \
          __FILE__,                                                        \
          __LINE__,                                                        \
          ::headwater::detail::compared(                                   \
              #left " " #op " " #right, headwater_left, headwater_right)); \
    }                                                                      \
  } while (false)

#define HEADWATER_CHECK_EQ(left, right) HEADWATER_CHECK_OP_(left, ==, right)
#define HEADWATER_CHECK_LE(left, right) HEADWATER_CHECK_OP_(left, <=, right)
