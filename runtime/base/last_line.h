// How a process ends that cannot go on.
#pragma once

#include <initializer_list>
#include <string_view>

namespace gpuc {

/// "error: " and the parts, as one line on stderr; then the process ends, status 1, with nothing taken down:
/// other threads may run. Of several threads that come here the first has its line, and the others wait for
/// the end. Allocates nothing, and may be called by a signal's handler.
[[noreturn]] void endWithError(std::initializer_list<std::string_view> parts);

/// Not to stderr, for a process that says nothing else.
void sendLastLineTo(int descriptor);

}  // namespace gpuc
