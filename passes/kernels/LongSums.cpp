//===- LongSums.cpp - Sums of a whole tensor ----------------------------------===//

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

static void split(ir::SumOp sum, const TargetDescription &device) {
  auto whole = cast<RankedTensorType>(sum.getOperand().getType());
  if (!whole.hasStaticShape() || ir::elementCount(whole) < device.leastLongSumElements ||
      ir::elementCount(sum.getType()) > 1)
    return;
  const int64_t dims = dimsOfParts(whole.getShape(), device.leastLongSumParts);
  if (dims == 0)
    return;
  OpBuilder builder(sum);
  auto parts = ir::SumOp::create(builder, sum.getLoc(), sum.getOperand(),
                                 llvm::to_vector(llvm::seq<int64_t>(dims, whole.getRank())));
  auto total = ir::SumOp::create(builder, sum.getLoc(), parts, llvm::to_vector(llvm::seq<int64_t>(0, dims)));
  sum.replaceAllUsesWith(total.getResult());
  sum.erase();
}

void splitLongSums(Block &block, const TargetDescription &device) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (auto sum = dyn_cast<ir::SumOp>(op))
      split(sum, device);
}

} // namespace gpuc
