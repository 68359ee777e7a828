//===- LongSums.cpp - Sums of a whole tensor, or of many rows -----------------===//

#include "passes/kernels/FuseSteps.h"

#include "llvm/ADT/Sequence.h"

#include <functional>
#include <numeric>

namespace gpuc {

using namespace mlir;

/// How many of the first dimensions make up the parts: the more equal their number and their length, the
/// shorter is the way to the sum. 0: none do.
static int64_t dimsOfParts(ArrayRef<int64_t> shape, int64_t leastParts) {
  const int64_t elements = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  int64_t parts = 1, best = 0, bestLength = elements;
  for (int64_t dims = 1; dims < static_cast<int64_t>(shape.size()); ++dims) {
    parts *= shape[dims - 1];
    const int64_t shorter = std::min(parts, elements / parts), longer = std::max(parts, elements / parts);
    if (shorter < leastParts || longer >= bestLength)
      continue;
    best = dims;
    bestLength = longer;
  }
  return best;
}

/// First the sums of what lies under each index of the first `dims` dimensions, then those.
static void takeInParts(ir::SumOp sum, int64_t dims) {
  OpBuilder builder(sum);
  ArrayRef<int64_t> folded = sum.getDims();
  auto parts = ir::SumOp::create(builder, sum.getLoc(), sum.getOperand(), folded.drop_front(dims));
  auto total = ir::SumOp::create(builder, sum.getLoc(), parts, folded.take_front(dims));
  sum.replaceAllUsesWith(total.getResult());
  sum.erase();
}

static bool isLong(ir::SumOp sum, int64_t leastElements) {
  auto whole = cast<RankedTensorType>(sum.getOperand().getType());
  return whole.hasStaticShape() && ir::elementCount(whole) >= leastElements;
}

static void split(ir::SumOp sum, const TargetDescription &device) {
  if (!isLong(sum, device.leastLongSumElements) || ir::elementCount(sum.getType()) > 1)
    return;
  if (int64_t dims = dimsOfParts(ir::shapeOf(sum.getOperand()), device.leastLongSumParts))
    takeInParts(sum, dims);
}

/// Whether the sum is one of rows, to columns of which there are few, and is not rounded on the way.
static bool isOfLongColumns(ir::SumOp sum, const TargetDescription &device) {
  ArrayRef<int64_t> dims = sum.getDims();
  const Type element = sum.getType().getElementType();
  return isLong(sum, device.leastLongColumnsElements) && dims.size() >= 2 &&
         llvm::equal(dims, llvm::seq<int64_t>(0, dims.size())) && (element.isF32() || element.isF64()) &&
         ir::elementCount(sum.getType()) > 1 && ir::elementCount(sum.getType()) <= device.mostLongColumns;
}

void splitLongSums(Block &block, const TargetDescription &device) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (auto sum = dyn_cast<ir::SumOp>(op))
      split(sum, device);
}

void splitLongColumns(Block &block, const TargetDescription &device) {
  constexpr int64_t fewestParts = 4, mostParts = 64;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto sum = dyn_cast<ir::SumOp>(op);
    if (!sum || !isOfLongColumns(sum, device))
      continue;
    const int64_t parts = ir::shapeOf(sum.getOperand()).front();
    if (parts >= fewestParts && parts <= mostParts)
      takeInParts(sum, 1);
  }
}

} // namespace gpuc
