//===- HostLoops.h - How a kernel is cut into tiles and vectors -------------===//
#pragma once

#include "passes/codegen/Kernel.h"
#include "passes/codegen/host/HostCode.h"

namespace gpuc::codegen {

/// Picoseconds for one element of one op, a vector at a time: measured on AVX-512, rounded up for narrower
/// vectors. Tiles are cut by it, so it is the same everywhere.
int64_t picosecondsPerElement(mlir::Operation &op);

/// A kernel's loops on a CPU, from shapes and target alone. Its parallel groups, but for the one along the
/// lanes, form `rows`; a tile is `rowsPerTile` rows of one chunk of the lane group. What is ordered is
/// visited inside, whole.
struct HostLoops {
  static constexpr size_t none = ~size_t(0);

  llvm::SmallVector<size_t> rowGroups; ///< Outermost first.
  size_t laneGroup = none;             ///< The innermost group, if there is one.
  int64_t lanes = 1;                   ///< A power of two.
  llvm::SmallVector<Range> laneRanges; ///< Of the lane group: see Ranges.h.
  size_t cutGroup = none; ///< The group of rows along which a concat or a pad changes the formula.
  llvm::SmallVector<Range> rowRanges; ///< Of that group, likewise.
  int64_t rows = 1, rowsPerTile = 1;
  int64_t laneExtent = 1, chunk = 1; ///< Elements of the lane group, of which a tile takes `chunk`.
  int64_t tiles = 1, grain = 1;
  int64_t picosecondsPerTile = 1; ///< Estimated work, of a tile that is full.
  /// What is read across, in whole squares of lanes by rows of the innermost of their groups; else nothing.
  llvm::SmallVector<mlir::Value, 1> squares;

  HostLoops(const Kernel &kernel, const HostTarget &target);
  /// Whether there are whole squares.
  bool fallsIntoSquares(const Kernel &kernel) const;
  /// Fills in cutGroup and rowRanges.
  void cutRows(const Kernel &kernel);
  int64_t chunks() const { return llvm::divideCeil(laneExtent, chunk); }
};

/// Finds the rows that the kernel's tiles fall into, if they do, and the operands that go by these.
void findRows(KernelSchedule &schedule, const Kernel &kernel, const HostLoops &loops);

/// What a kernel keeps of the row that it is in, on the stack, from the sweep that computes it to a later
/// one: values with an element for each of the row's that cost more to compute than to load. For each sweep,
/// those that it stores. What is cheap, and what would not fit, is computed again; bits are the same either
/// way.
llvm::SmallVector<llvm::SmallVector<mlir::Value, 1>> keptValues(const Kernel &kernel);

} // namespace gpuc::codegen
