//===- CudaLoops.h - How a kernel is cut into blocks and threads ------------===//
#pragma once

#include "passes/codegen/Kernel.h"
#include "passes/codegen/cuda/CudaCode.h"

namespace gpuc::codegen {

inline constexpr int64_t kWarp = 32; ///< Threads that go on together.

/// Of a kernel, or of a segment: twice what an H200's 132 multiprocessors hold at once, at 8 blocks each.
inline constexpr int64_t kMostBlocks = 2048;

/// A kernel's threads, from shapes alone. A tile is `columns` outputs (elements of the results; for running
/// sums and sorts, of what is parallel in them; for scatters, of that and of the parts of the slots, which
/// are outermost); `parts` threads share the folding of each. A block takes every grid-th tile.
struct CudaLoops {
  llvm::SmallVector<size_t> outputGroups; ///< Outermost first.
  llvm::SmallVector<size_t> foldedGroups; ///< Of reductions, outermost first.
  int64_t outputs = 1, folded = 1;
  int64_t columns = 1, parts = 1; ///< parts is a power of two.
  bool adjacentColumns = true;    ///< Neighbouring threads are of neighbouring outputs, else parts of one.
  int64_t grid = 1;
  /// Neighbours along the innermost loop, which a thread takes together: one output of `outputs`, or, of rows
  /// that are folded where they lie, one of foldedVectors(), with a rest behind them.
  int64_t lanes = 1;
  bool alignedLanes = false;              ///< They lie at multiples of their own bytes.
  llvm::SmallVector<Range> laneRanges;    ///< Of the innermost loop, in elementwise kernels: see Ranges.h.
  int64_t slotParts = 1, slotsOfPart = 1; ///< Of scatter_add; the last part may have fewer.

  /// `mayWiden`: its blocks may have another number of threads than all kernels' have.
  explicit CudaLoops(const Kernel &kernel, bool mayWiden = true);
  int64_t tiles() const { return llvm::divideCeil(outputs, columns); }
  int64_t block() const { return columns * parts; }
  bool foldsLanes() const { return lanes > 1 && !adjacentColumns; }
  int64_t foldedVectors() const { return foldsLanes() ? folded / lanes : folded; }

private:
  void shareLanes(const Kernel &kernel);
  void shareRows(const Kernel &kernel, bool mayWiden);
  void shareColumns(const Kernel &kernel, bool mayWiden);
  void shareSlots(const Kernel &kernel);
};

} // namespace gpuc::codegen
