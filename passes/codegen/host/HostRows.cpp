//===- HostRows.cpp - Which rows of an operand a kernel's tiles touch -------===//
//
// Tiles count along the outermost parallel group first. Whatever has that group's dimensions as its own first
// ones, at the same coordinates, is cut where the tiles are: wherever else in a row a tile reads, the row is
// its own.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/host/HostLoops.h"

#include "llvm/ADT/BitVector.h"

#include <numeric>

using namespace mlir;

namespace gpuc::codegen {

/// The group that tiles are cut along; none if there is no parallel one.
static size_t outermostGroup(const Kernel &kernel, const HostLoops &loops) {
  if (!loops.rowGroups.empty())
    return loops.rowGroups.front();
  bool isParallel =
      loops.laneGroup != HostLoops::none && kernel.groups[loops.laneGroup].role == Role::Parallel;
  return isParallel ? loops.laneGroup : HostLoops::none;
}

/// Outermost first; none of extent 1.
static SmallVector<size_t> dimensionsOf(const Group &group, ArrayRef<int64_t> extents) {
  SmallVector<size_t> dims;
  int64_t rest = group.extent;
  for (size_t dim = group.last + 1; dim-- > 0 && rest > 1;) {
    if (extents[dim] == 1)
      continue;
    dims.insert(dims.begin(), dim);
    rest /= extents[dim];
  }
  return dims;
}

/// Into how many equal parts of the group whole tiles fall.
static int64_t rowsAlong(const Group &group, const HostLoops &loops) {
  if (loops.rowGroups.empty())
    return loops.laneExtent % loops.chunk == 0 ? loops.chunks() : 0;
  if (loops.rows % loops.rowsPerTile != 0)
    return 0;
  return std::gcd(loops.rows / loops.rowsPerTile, group.extent);
}

/// Whether the dimensions `dims` of the space come first in a tensor that is read, or written, at `index`.
static bool comeFirst(ArrayRef<size_t> dims, ArrayRef<int64_t> shape, const Index &index,
                      ArrayRef<int64_t> extents) {
  for (auto [entry, extent] : llvm::zip_equal(index, shape)) {
    if (extent == 1)
      continue;
    if (dims.empty())
      return true;
    if (extent != extents[dims.front()] || entry != coordinate(dims.front(), extents.size()))
      return false;
    dims = dims.drop_front();
  }
  return dims.empty();
}

void findRows(KernelSchedule &schedule, const Kernel &kernel, const HostLoops &loops) {
  size_t group = outermostGroup(kernel, loops);
  if (group == HostLoops::none || (kernel.form != Form::Elementwise && kernel.form != Form::Reduction))
    return;
  SmallVector<size_t> dims = dimensionsOf(kernel.groups[group], kernel.extents);
  unsigned arguments = kernel.body->getNumArguments();
  std::vector<bool> byRows(arguments, false); // what nobody reads may have any number of rows
  llvm::BitVector readElsewhere(arguments);
  forEachRead(kernel, [&](BlockArgument argument, const Index &index) {
    unsigned number = argument.getArgNumber();
    if (!comeFirst(dims, shapeOf(argument), index, kernel.extents))
      readElsewhere.set(number);
    byRows[number] = !readElsewhere[number];
  });
  for (Value yield : kernel.yields())
    byRows.push_back(comeFirst(dims, shapeOf(yield), kernel.indexOf(yield), kernel.extents));
  if (!std::all_of(byRows.begin() + arguments, byRows.end(), [](bool isByRows) { return isByRows; }))
    return;
  if (int64_t rows = rowsAlong(kernel.groups[group], loops); rows >= 2) {
    schedule.rows = rows;
    schedule.byRows = std::move(byRows);
  }
}

} // namespace gpuc::codegen
