#include "runtime/base/quote.h"

#include <cstdint>

namespace gpuc {
namespace {

/// One character, or one byte that belongs to none.
struct Character {
  size_t bytes;
  uint32_t code;
  bool is_utf8;
};

Character firstOf(std::string_view text) {
  const auto byteAt = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byteAt(0);
  if (lead < 0x80) return {1, lead, true};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {1, lead, false};
  uint32_t code = lead & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byteAt(i) & 0xc0) != 0x80) return {1, lead, false};
    code = code << 6 | (byteAt(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kLeast[bytes] || code > 0x10ffff || is_surrogate) return {1, lead, false};
  return {bytes, code, true};
}

bool isPrintable(Character character) {
  const uint32_t code = character.code;
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool ends_line = code == 0x2028 || code == 0x2029;
  const bool turns = code == 0x061c || code == 0x200e || code == 0x200f ||
                     (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return character.is_utf8 && !is_control && !ends_line && !turns;
}

}  // namespace

bool isPrintable(std::string_view text) {
  while (!text.empty()) {
    const Character character = firstOf(text);
    if (!isPrintable(character)) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

std::string printable(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Character character = firstOf(text);
    for (char c : text.substr(0, character.bytes)) {
      const auto byte = static_cast<uint8_t>(c);
      if (isPrintable(character))
        result += c;
      else
        result += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
    text.remove_prefix(character.bytes);
  }
  return result;
}

std::string_view firstBytes(std::string_view text, size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  size_t end = most_bytes;
  const auto goesOn = [&](size_t i) { return (static_cast<uint8_t>(text[i]) & 0xc0) == 0x80; };
  while (end > 0 && most_bytes - end < 4 && goesOn(end)) --end;
  return text.substr(0, end);
}

std::string inQuotes(std::string_view text) {
  constexpr size_t kMostBytes = 100;
  const std::string_view first = firstBytes(text, kMostBytes);
  std::string escaped;
  for (char c : first) {
    if (c == '\'' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return "'" + printable(escaped) + (first.size() < text.size() ? "…'" : "'");
}

}  // namespace gpuc
