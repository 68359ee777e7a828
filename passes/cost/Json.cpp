//===- Json.cpp - JSON from files that may be anyone's ------------------------===//

#include "passes/cost/Json.h"

#include <algorithm>
#include <string>

namespace gpuc {

/// How deep brackets stand in one another, those in strings left out.
static size_t nestingOf(llvm::StringRef text) {
  size_t depth = 0, deepest = 0;
  bool isString = false;
  for (size_t index = 0; index < text.size(); ++index) {
    const char character = text[index];
    if (isString && character == '\\')
      ++index;
    else if (character == '"')
      isString = !isString;
    else if (!isString && (character == '[' || character == '{'))
      deepest = std::max(deepest, ++depth);
    else if (!isString && (character == ']' || character == '}'))
      depth -= depth > 0;
  }
  return deepest;
}

Result<llvm::json::Value> parseJson(llvm::StringRef text) {
  constexpr size_t kMostNested = 64;
  if (nestingOf(text) > kMostNested)
    return Status::error("nested more than " + std::to_string(kMostNested) + " deep");
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return llvm::consumeError(value.takeError()), Status::error("not JSON");
  return std::move(*value);
}

} // namespace gpuc
