//===- Selection.h - What to keep within so many bytes -------------------------===//
#pragma once

#include "passes/recompute/ExactSelection.h"

namespace gpuc {

/// Choices for a block of ever fewer bytes. All that it does is counted: the same block and limits give the
/// same choices.
class Selection {
public:
  /// `little` is a choice that keeps little, from which the search begins as well as from all kept.
  Selection(const BlockGraph &graph, llvm::BitVector little);

  /// The best that is found, and a bound. Limits may only fall.
  Selected within(int64_t limit);

  /// Of the fewest bytes that were found.
  Selected least();

  /// What no choice of such a peak can go below, be it one of these or not.
  double atLeast(int64_t peak) const;

private:
  void offer(llvm::BitVector kept, int64_t limit, Selected &best) const;
  llvm::BitVector pricedToFit(int64_t limit, llvm::BitVector kept) const;
  void improve(int64_t limit, Selected &best) const;

  const BlockGraph &graph_;
  const LeastTime leastTime_;
  llvm::BitVector down_; ///< Where the way down from all kept has come to.
  bool isDownOpen_ = true;
  llvm::BitVector little_;
  int64_t littlePeak_;
  std::vector<std::pair<int64_t, double>> proven_; ///< Limits and what was proven of them.
};

} // namespace gpuc
