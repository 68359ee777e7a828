//===- Link.h - What ranks exchange by -----------------------------------------===//
#pragma once

#include "runtime/base/status.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace gpuc {

/// A link between ranks, as one of them sees it. No bit hangs on it: by these figures gradients are put into
/// buckets, and it is decided whether to compute beside an exchange.
struct Link {
  std::string name;
  double bytesPerNanosecond; ///< That a rank sends, and receives at the same time.
  double latencyNanoseconds; ///< Of one message.
  bool takesCores = false;   ///< The cores that would compute move the bytes: nothing is gained beside it.

  /// Each rank sends its parts to who adds them up, who sends the sums to all: two messages one behind the
  /// other, and (ranks - 1) / ranks of the bytes each time, which is what a ring moves as well. Many ranks
  /// where it is not said how many.
  double allReduceNanoseconds(int64_t bytes, int64_t ranks = kManyRanks) const;

  static constexpr int64_t kManyRanks = 1 << 20;
};

/// `memory`, `ethernet`, `infiniband` or `nvlink`, each with `:bandwidth=SIZE,latency=MICROSECONDS` where
/// other figures are known, SIZE a second: "ethernet:bandwidth=12.5GB,latency=20". Errors quote what is
/// wrong.
Result<Link> parseLink(llvm::StringRef text);

/// As parseLink reads it.
std::string textOf(const Link &link);

/// What is taken if nobody says: `memory` between the ranks of a host, `nvlink` between GPUs.
inline constexpr llvm::StringLiteral kHostLink = "memory", kDeviceLink = "nvlink";

} // namespace gpuc
