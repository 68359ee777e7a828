// What a fuzz target demands of a reader's answer.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace gpuc {

/// Ends the process, which the fuzzer takes for a crash.
inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

template <typename Outcome>
void requireOneLine(const Outcome& outcome, std::string_view start) {
  require(std::string_view(outcome.message()).starts_with(start), "an error names the culprit");
  require(outcome.message().find('\n') == std::string_view::npos, "an error is one line");
}

}  // namespace gpuc
