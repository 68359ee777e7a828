// Files packed by gzip, unpacked in memory.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace gpuc {

/// True if the bytes begin as gzip does (1f 8b).
bool isGzip(std::string_view bytes);

/// Unpacks one or several gzip members in a row, `most` bytes of them at most: what is packed may be a
/// thousand times as long. Errors, which begin with `name`: cut short, corrupt (zlib's reason), bytes after
/// the last member; none of what lies behind those `most`.
Result<std::string> gunzip(std::string_view bytes, const std::string& name, size_t most);

}  // namespace gpuc
