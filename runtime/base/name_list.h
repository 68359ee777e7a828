// Names in an error or a warning: a few of them, however many there are.
#pragma once

#include <string>
#include <vector>

namespace gpuc {

/// "a, b, c, d, e and 3 more".
inline std::string listOf(const std::vector<std::string>& names) {
  constexpr size_t kMostNamed = 5;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMostNamed; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostNamed) text += " and " + std::to_string(names.size() - kMostNamed) + " more";
  return text;
}

}  // namespace gpuc
