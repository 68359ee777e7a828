//===- Text.h - Names from files in errors ----------------------------------===//
#pragma once

#include <string>
#include <string_view>

namespace gpuc::onnx {

/// `text` with control characters escaped, and cut off with "…" beyond 1,000 bytes: names in a file may hold
/// anything, an error is one line.
inline std::string oneLine(std::string_view text) {
  constexpr size_t kMostBytes = 1000;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string line;
  for (char letter : text.substr(0, kMostBytes)) {
    unsigned char byte = static_cast<unsigned char>(letter);
    if (byte < 0x20 || byte == 0x7f)
      line += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    else
      line += letter;
  }
  return line + (text.size() > kMostBytes ? "…" : "");
}

} // namespace gpuc::onnx
