//===- Text.h - Names from files in errors ----------------------------------===//
#pragma once

#include "runtime/base/quote.h"

namespace gpuc::onnx {

/// `text`, printable, and cut off with "…" beyond 1,000 bytes: names in a file may hold anything, an error is
/// one line.
inline std::string oneLine(std::string_view text) {
  std::string_view first = firstBytes(text, 1000);
  return printable(first) + (first.size() < text.size() ? "…" : "");
}

} // namespace gpuc::onnx
