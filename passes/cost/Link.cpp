//===- Link.cpp - What ranks exchange by ----------------------------------------===//

#include "passes/cost/Link.h"

#include "runtime/base/flags.h"
#include "runtime/base/parse.h"
#include "runtime/base/quote.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace gpuc {
namespace {

std::vector<Link> knownLinks() {
  return {
      // Two ranks of one machine with two cores: 14 us for one number, 4.9 ms for 16 MB.
      {"memory", 3.3, 7'000, /*takesCores=*/true},
      // 10 Gbit/s, and what TCP takes of a message.
      {"ethernet", 1.25, 30'000},
      // 400 Gbit/s.
      {"infiniband", 50, 5'000},
      // What NCCL makes of NVLink on eight H200, beside its launch.
      {"nvlink", 475, 10'000},
  };
}

Status readKey(llvm::StringRef key, llvm::StringRef value, Link &link) {
  if (key == "bandwidth") {
    GPUC_ASSIGN_OR_RETURN(const int64_t bytes, parseSize(value));
    link.bytesPerNanosecond = static_cast<double>(bytes) / 1e9;
    return bytes > 0 ? okStatus() : Status::error("bandwidth=" + value.str() + ": nothing would arrive");
  }
  if (key == "latency") {
    GPUC_ASSIGN_OR_RETURN(const double microseconds, parseDouble(value));
    link.latencyNanoseconds = microseconds * 1000;
    return microseconds >= 0 ? okStatus() : Status::error("latency=" + value.str() + " is less than 0");
  }
  return Status::error("unknown key " + inQuotes(key.str()) + "; did you mean " +
                       nearestName(key.str(), {"bandwidth", "latency"}) + "?");
}

} // namespace

double Link::allReduceNanoseconds(int64_t bytes, int64_t ranks) const {
  if (ranks <= 1)
    return 0;
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return 2 * (latencyNanoseconds + share * static_cast<double>(bytes) / bytesPerNanosecond);
}

std::string textOf(const Link &link) {
  return llvm::formatv("{0}:bandwidth={1},latency={2:f3}", link.name,
                       std::max(std::llround(link.bytesPerNanosecond * 1e9), 1ll),
                       link.latencyNanoseconds / 1000);
}

Result<Link> parseLink(llvm::StringRef text) {
  const auto [name, keys] = text.split(':');
  const std::vector<Link> known = knownLinks();
  const auto found = llvm::find_if(known, [&](const Link &link) { return link.name == name; });
  if (found == known.end()) {
    std::vector<std::string> names;
    for (const Link &link : known)
      names.push_back(link.name);
    return Status::error("unknown link " + inQuotes(name.str()) + "; did you mean " +
                         nearestName(name.str(), names) + "?");
  }
  Link link = *found;
  llvm::SmallVector<llvm::StringRef> parts;
  if (name.size() < text.size())
    keys.split(parts, ',');
  for (llvm::StringRef part : parts)
    GPUC_RETURN_IF_ERROR(readKey(part.split('=').first, part.split('=').second, link));
  return link;
}

} // namespace gpuc
