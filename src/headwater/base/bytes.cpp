#include "headwater/base/bytes.h"

#include "headwater/base/error.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>

namespace headwater {
namespace {

struct Unit {
  std::string_view name;  // lower case
  std::uint64_t bytes;
};

constexpr std::array kPrintedUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
// Half a digit below the next unit already prints as that unit.
constexpr double kNextUnit = 1023.95;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 63;

constexpr std::array kUnits{
    Unit{"", 1},
    Unit{"b", 1},
    Unit{"k", 1ULL << 10},
    Unit{"kib", 1ULL << 10},
    Unit{"kb", 1'000},
    Unit{"m", 1ULL << 20},
    Unit{"mib", 1ULL << 20},
    Unit{"mb", 1'000'000},
    Unit{"g", 1ULL << 30},
    Unit{"gib", 1ULL << 30},
    Unit{"gb", 1'000'000'000},
    Unit{"t", 1ULL << 40},
    Unit{"tib", 1ULL << 40},
    Unit{"tb", 1'000'000'000'000},
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto length = static_cast<std::size_t>(end - text.begin());
  const std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  return digits;
}

std::optional<std::uint64_t> find_unit(std::string_view text) {
  std::string name(text);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  const auto found = std::find_if(
      kUnits.begin(), kUnits.end(), [&](const Unit& unit) { return unit.name == name; });
  return found == kUnits.end() ? std::nullopt : std::optional(found->bytes);
}

double fraction_of(std::string_view digits) {
  double value = 0;
  double weight = 1;
  for (const char digit : digits) {
    weight /= 10;
    value += weight * (digit - '0');
  }
  return value;
}

// The two parts are kept apart so that whole numbers stay exact.
std::optional<std::uint64_t> try_parse(std::string_view text) {
  const std::string_view whole_digits = take_digits(text);
  std::uint64_t whole = 0;
  const auto [end, error] =
      std::from_chars(whole_digits.data(), whole_digits.data() + whole_digits.size(), whole);
  if (whole_digits.empty() || error != std::errc{}) {
    return std::nullopt;
  }
  std::string_view fraction_digits;
  const bool has_fraction = text.starts_with('.');
  if (has_fraction) {
    text.remove_prefix(1);
    fraction_digits = take_digits(text);
  }
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::optional<std::uint64_t> unit = find_unit(text);
  if (!unit || (has_fraction && (fraction_digits.empty() || *unit == 1))) {
    return std::nullopt;
  }
  if (whole > kMaxBytes / *unit) {
    return std::nullopt;
  }
  const auto part = std::llround(fraction_of(fraction_digits) * static_cast<double>(*unit));
  const std::uint64_t bytes = whole * *unit + static_cast<std::uint64_t>(part);
  return bytes == 0 || bytes > kMaxBytes ? std::nullopt : std::optional(bytes);
}

}  // namespace

std::string format_bytes(std::size_t bytes) {
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= (unit == 0 ? 1024.0 : kNextUnit) && unit + 1 < kPrintedUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const double rounded = std::round(value * 10) / 10;
  const int decimals = rounded == std::floor(rounded) ? 0 : 1;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s", decimals, rounded, kPrintedUnits.at(unit));
  return text.data();
}

std::size_t parse_bytes(std::string_view text) {
  const std::optional<std::uint64_t> bytes = try_parse(text);
  if (!bytes) {
    throw InvalidArgument(
        "Not a number of bytes (write for example 12GiB, 1.5GB, 200 MiB, 2G or 4096; above 0 and "
        "at "
        "most 2^63 bytes): \"" +
        std::string(text) + "\"");
  }
  return *bytes;
}

}  // namespace headwater
