//===- ExactSelection.h - The least time within so many bytes, by branch and bound ===//
#pragma once

#include "passes/recompute/LeastTime.h"

#include <limits>

namespace gpuc {

/// A choice, and what no choice within the same limit can go below.
struct Selected {
  llvm::BitVector kept;
  double nanoseconds = 0; ///< To compute again what it does not keep; infinite: it is not within the limit.
  double atLeast = 0;

  bool isFound() const { return nanoseconds < std::numeric_limits<double>::infinity(); }
};

/// Betters a choice, which may be outside of the limit, by deciding one value after another: those decisions
/// are given up of which a bound says that nothing comes, be it of memory or of time. Ends when nothing is
/// left that could be better by more than a two-hundredth, or when so much effort, in commands looked at, is
/// spent: `atLeast` is what was proven until then.
Selected selectExactly(const BlockGraph &graph, const LeastTime &least, const LeastTime::Priced &priced,
                       int64_t limit, Selected best, int64_t effort);

} // namespace gpuc
