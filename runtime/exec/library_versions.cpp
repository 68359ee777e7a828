#include "runtime/exec/library_versions.h"

#include <algorithm>

namespace gpuc {
namespace {

/// The first `parts` numbers of "1.17.3": "1" or "1.17".
std::string leading(const std::string& version, int parts) {
  size_t end = 0;
  for (int i = 0; i < parts && end != std::string::npos; ++i) end = version.find('.', i == 0 ? 0 : end + 1);
  return version.substr(0, end);
}

}  // namespace

Status checkLibraries(const std::vector<LibraryInfo>& needed, const std::vector<LibraryInfo>& present,
                      bool strict, std::vector<std::string>& warnings) {
  for (const LibraryInfo& library : needed) {
    auto found = std::find_if(present.begin(), present.end(),
                              [&](const LibraryInfo& candidate) { return candidate.name == library.name; });
    std::string what = "plan compiled for " + library.name + " " + library.version;
    if (found == present.end()) return Status::error(what + ", which this device does not have");
    what += ", found " + found->version;
    if (leading(found->version, 1) != leading(library.version, 1))
      return Status::error(what + ": another major version; compile the model again here");
    if (leading(found->version, 2) == leading(library.version, 2)) continue;
    if (strict) return Status::error(what + ": bits may differ, and --strict refuses that");
    warnings.push_back(what + ": bits may differ");
  }
  return okStatus();
}

}  // namespace gpuc
