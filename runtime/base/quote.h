// Text from files and command lines, made fit to stand in an error of one line.
#pragma once

#include <string>
#include <string_view>

namespace gpuc {

/// 'text', with control characters, quotes and backslashes escaped; beyond 100 bytes cut off with "…". Bytes
/// from 128 up stay as they are, as parts of UTF-8.
inline std::string inQuotes(std::string_view text) {
  constexpr size_t kMostBytes = 100;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string quoted = "'";
  for (char c : text.substr(0, kMostBytes)) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      quoted += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    else if (c == '\'' || c == '\\')
      quoted += {'\\', c};
    else
      quoted += c;
  }
  return quoted + (text.size() > kMostBytes ? "…'" : "'");
}

}  // namespace gpuc
