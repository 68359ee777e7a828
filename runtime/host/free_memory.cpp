#include "runtime/host/free_memory.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <optional>

#include "runtime/base/file.h"

namespace gpuc {
namespace {

/// The number behind `name` in a file; none if there is no such file, or no number: a group without a limit
/// says "max".
std::optional<uint64_t> numberIn(const std::string& path, const std::string& name = "") {
  Result<std::string> text = readFile(path);
  if (!text.ok()) return std::nullopt;
  const size_t at = text->find(name);
  uint64_t number = 0;
  if (at == std::string::npos || std::sscanf(text->c_str() + at + name.size(), " %" SCNu64, &number) != 1)
    return std::nullopt;
  return number;
}

/// What a control group has left, where it has a limit. Pages that its files take can be had.
std::optional<uint64_t> leftIn(const std::string& limit, const std::string& use,
                               const std::string& statistics, const std::string& files) {
  const std::optional<uint64_t> most = numberIn(limit), used = numberIn(use);
  if (!most || !used) return std::nullopt;
  const uint64_t held = *used - std::min(*used, numberIn(statistics, files).value_or(0));
  return *most - std::min(*most, held);
}

}  // namespace

Result<uint64_t> freeHostMemory(const std::string& root) {
  const std::string path = root + "/proc/meminfo", groups = root + "/sys/fs/cgroup/";
  std::optional<uint64_t> kibibytes = numberIn(path, "MemAvailable:");
  if (!kibibytes) return Status::error(path + " does not say how much memory is available");
  uint64_t bytes = *kibibytes << 10;
  // Of the second version and of the first, as a container sees its own.
  for (const auto& left :
       {leftIn(groups + "memory.max", groups + "memory.current", groups + "memory.stat", "inactive_file"),
        leftIn(groups + "memory/memory.limit_in_bytes", groups + "memory/memory.usage_in_bytes",
               groups + "memory/memory.stat", "total_inactive_file")})
    if (left) bytes = std::min(bytes, *left);
  return bytes;
}

}  // namespace gpuc
