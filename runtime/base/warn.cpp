#include "runtime/base/warn.h"

#include <cstdio>
#include <utility>

#include "runtime/base/quote.h"

namespace gpuc {

static thread_local KeptWarnings* keeper = nullptr;

void warn(std::string_view text) {
  const std::string line = printable(text);
  std::fprintf(stderr, "warning: %s\n", line.c_str());
  if (keeper) keeper->lines_.push_back(line);
}

KeptWarnings::KeptWarnings() : former_(std::exchange(keeper, this)) {}
KeptWarnings::~KeptWarnings() { keeper = former_; }

}  // namespace gpuc
