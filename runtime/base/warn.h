// What a tool says beside its work, where nothing is wrong yet.
#pragma once

#include <string_view>

namespace gpuc {

/// "warning: …" on stderr, one line, printable: names in it may come from any file.
void warn(std::string_view text);

}  // namespace gpuc
