#include "runtime/report/pickle.h"

namespace gpuc::pickle {
namespace {

/// Little-endian.
std::string bytesOf(uint64_t value, size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

}  // namespace

/// A long: nine bytes, of which the last is its sign, would be read as something else by some; eight hold
/// what an arena has.
std::string number(uint64_t value) { return "\x8a\x08" + bytesOf(value & INT64_MAX, 8); }

std::string text(std::string_view value) { return "X" + bytesOf(value.size(), 4) + std::string(value); }

std::string dict(std::initializer_list<std::pair<std::string_view, std::string>> items) {
  std::string result = "}";
  for (const auto& [key, value] : items) result += text(key) + value + "s";
  return result;
}

std::string file(std::string_view value) { return "\x80\x02" + std::string(value) + "."; }

}  // namespace gpuc::pickle
