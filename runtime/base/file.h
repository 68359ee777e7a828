// Whole files in and out. A file that is written is either there in full or not touched at all.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace gpuc {

/// All bytes of a file; "-" is stdin. Errors name the path and the system's reason.
Result<std::string> readFile(const std::string& path);

/// Replaces the file at `path` by `bytes`: written to a temporary file in the same folder, synced, renamed.
/// Whoever reads `path` sees the old bytes or the new ones; after an error the old ones, and no temporary is
/// left. Nor does a process leave one that is killed while it writes, where the file system has files without
/// names (not over NFS, say): there it is `path`.tmp.PID.NUMBER. Links are followed; the permissions of a
/// replaced file are kept, and its temporary is the owner's alone. "-" is stdout; devices and pipes are
/// written directly.
Status writeFileAtomically(const std::string& path, std::string_view bytes);

/// As above, from pieces that are written one after the other: a large file need not be put together first.
Status writeFileAtomically(const std::string& path, std::span<const std::string_view> pieces);

/// All of `bytes` to an open file, which errors call `name`. Allocates nothing unless it fails.
Status writeAll(int descriptor, std::string_view bytes, const std::string& name);

/// With the folders that it lies in; one that is there stays as it is.
Status makeFolder(const std::string& path);

/// "cannot <action> <path>: <the system's reason>", from errno.
Status systemError(const char* action, const std::string& path);

}  // namespace gpuc
