//===- Buckets.h - Which sums over ranks travel together -----------------------===//
#pragma once

#include "passes/cost/Link.h"

#include "llvm/ADT/ArrayRef.h"

#include <limits>
#include <vector>

namespace gpuc {

/// What is to be summed over ranks, shared out or gathered: the gradient of one variable, say.
struct Exchange {
  int64_t bytes;
  double ready;          ///< When it is computed, in nanoseconds from the beginning of the step.
  int64_t kind;          ///< Those of different kinds cannot travel together.
  bool isNumber = false; ///< And no tensor.
  bool isGather = false; ///< Of what ranks have shares of: there all the time, and nobody wants it early.
};

/// So much later than it could be the last sum may be there, if fewer buckets do.
inline constexpr double kSlack = 0.002;

/// Where each bucket ends, of exchanges in the order in which they are ready, if they travel beside the
/// commands that compute. The best buckets, with which the last sum is there first, are known by dynamic
/// programming; but they are those of a prediction. These are the ones that lose least to them in the mean
/// over commands that turn out to be up to four times as fast or as slow, and `worthFewer` of the time more
/// at most; of such the fewest. None is larger than is said, but of one exchange.
std::vector<size_t> cutForOverlap(llvm::ArrayRef<Exchange> exchanges, const Link &link,
                                  int64_t mostBytes = std::numeric_limits<int64_t>::max(),
                                  double worthFewer = kSlack);

/// Buckets of at most so many bytes, or of one exchange.
std::vector<size_t> cutBySize(llvm::ArrayRef<Exchange> exchanges, int64_t mostBytes);

/// The least bytes of which latency is a twentieth of the time. A rank that computes nothing meanwhile has no
/// use for larger buckets, which keep gradients alive.
int64_t bytesBeyondLatency(const Link &link);

} // namespace gpuc
