//===- Segments.h - A forward pass cut where few bytes cross -----------------===//
//
// Of each segment but the last the backward pass keeps what crosses into later ones, and computes the rest
// again when it comes to it. Then live is what the segments before keep, and all that the backward pass reads
// of this one: the peak of the segment. After T. Chen et al., "Training Deep Nets with Sublinear Memory Cost"
// (2016), who cut a chain of n layers into √n segments.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/recompute/ForwardPass.h"

namespace gpuc {

class Segments {
public:
  explicit Segments(const ForwardPass &forward);

  /// As many segments as the number of ops has in its root, of like size in bytes that the backward pass
  /// reads. Each is cut in its latter half, at the place that the fewest bytes cross.
  void cutByRoot();

  /// So that the largest peak is as small as it can be, and of such cuts one that keeps the fewest bytes.
  void cutToLeast();

  /// Whether a value of the forward pass is read in a later segment, or belongs to the last.
  bool keeps(mlir::Value value) const;

private:
  void cutEach(int64_t bytes);
  /// Cuts so that no peak is above `limit` bytes and the fewest are kept; false, and nothing is changed, if
  /// there is no such way.
  bool cutWithin(int64_t limit);
  size_t segmentOf(int64_t number) const;
  int64_t total() const { return residual_.back(); }

  const ForwardPass &forward_;
  llvm::DenseMap<mlir::Operation *, int64_t> numbers_;
  std::vector<int64_t> residual_; ///< [i]: bytes that the backward pass reads of the ops before i.
  std::vector<int64_t> crossing_; ///< [i]: bytes that ops from i on read of those before.
  std::vector<int64_t> cuts_;     ///< The numbers of the ops with which segments begin, but for the first.
};

} // namespace gpuc
