#include "runtime/base/warn.h"

#include <cstdio>

#include "runtime/base/quote.h"

namespace gpuc {

void warn(std::string_view text) { std::fprintf(stderr, "warning: %s\n", printable(text).c_str()); }

}  // namespace gpuc
