#include "runtime/base/parse.h"

#include <charconv>
#include <cmath>
#include <string>

namespace gpuc {
namespace {

Status malformed(std::string_view text, const char* expected) {
  return Status::error("'" + std::string(text) + "' is not " + expected);
}

struct Unit {
  std::string_view suffix;
  int64_t bytes;
};

constexpr Unit kUnits[] = {{"KB", 1000},
                           {"MB", 1000 * 1000},
                           {"GB", 1000 * 1000 * 1000},
                           {"KiB", 1ll << 10},
                           {"MiB", 1ll << 20},
                           {"GiB", 1ll << 30},
                           {"", 1}};

constexpr const char* kSizeForm = "a size (bytes, or a number with KB, MB, GB, KiB, MiB or GiB)";

constexpr const char* kLargestSize = "a size below 2^63 bytes";

/// Whether it begins with an integer that 64 bits do not hold.
bool isTooLarge(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc::result_out_of_range && !text.starts_with('-');
}

/// The digits of "1.5" around the point. `fraction` is the part after it, in units of 10^-digits.
struct Decimal {
  int64_t whole = 0;
  int64_t fraction = 0;
  int64_t scale = 1;
};

bool readDigits(std::string_view text, int64_t& value) {
  if (text.empty() || text[0] == '-') return false;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool readDecimal(std::string_view text, Decimal& decimal) {
  size_t point = text.find('.');
  if (!readDigits(text.substr(0, point), decimal.whole)) return false;
  if (point == std::string_view::npos) return true;
  // Nine digits tell bytes apart up to a gigabyte and keep fraction * unit within int64.
  std::string_view digits = text.substr(point + 1);
  if (digits.size() > 9 || !readDigits(digits, decimal.fraction)) return false;
  for (size_t i = 0; i < digits.size(); ++i) decimal.scale *= 10;
  return true;
}

}  // namespace

Result<int64_t> parseInt64(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return malformed(text, "within the range of 64-bit integers");
  if (error != std::errc() || end != text.data() + text.size()) return malformed(text, "an integer");
  return value;
}

Result<double> parseDouble(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return malformed(text, "within the range of double precision");
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return malformed(text, "a number");
  return value;
}

Result<int64_t> parseSize(std::string_view text) {
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.suffix)) continue;
    Decimal number;
    std::string_view digits = text.substr(0, text.size() - unit.suffix.size());
    if (isTooLarge(digits)) return malformed(text, kLargestSize);
    if (!readDecimal(digits, number) || (number.scale > 1 && unit.bytes == 1))
      return malformed(text, kSizeForm);
    int64_t bytes = 0;
    int64_t part = number.fraction * unit.bytes / number.scale;
    if (__builtin_mul_overflow(number.whole, unit.bytes, &bytes) ||
        __builtin_add_overflow(bytes, part, &bytes))
      return malformed(text, kLargestSize);
    return bytes;
  }
  return malformed(text, kSizeForm);
}

}  // namespace gpuc
