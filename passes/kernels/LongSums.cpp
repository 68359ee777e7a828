//===- LongSums.cpp - Sums of a whole tensor ----------------------------------===//

#include "passes/kernels/LongSums.h"

#include "llvm/ADT/Sequence.h"

#include <functional>
#include <numeric>

namespace gpuc {

using namespace mlir;

/// Shorter ones are done before a second launch would have begun.
constexpr int64_t kLeastElements = 32 * 1024;

/// Fewer parts would leave a processor idle; shorter ones are hardly worth an element.
constexpr int64_t kLeastParts = 16;

/// How many of the first dimensions make up the parts: the more equal their number and their length, the
/// shorter is the way to the sum. 0: none do.
static int64_t dimsOfParts(ArrayRef<int64_t> shape) {
  const int64_t elements = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  int64_t parts = 1, best = 0, bestLength = elements;
  for (int64_t dims = 1; dims < static_cast<int64_t>(shape.size()); ++dims) {
    parts *= shape[dims - 1];
    const int64_t shorter = std::min(parts, elements / parts), longer = std::max(parts, elements / parts);
    if (shorter < kLeastParts || longer >= bestLength)
      continue;
    best = dims;
    bestLength = longer;
  }
  return best;
}

static void split(ir::SumOp sum) {
  auto whole = cast<RankedTensorType>(sum.getOperand().getType());
  if (!whole.hasStaticShape() || ir::elementCount(whole) < kLeastElements ||
      ir::elementCount(sum.getType()) > 1)
    return;
  const int64_t dims = dimsOfParts(whole.getShape());
  if (dims == 0)
    return;
  OpBuilder builder(sum);
  auto parts = ir::SumOp::create(builder, sum.getLoc(), sum.getOperand(),
                                 llvm::to_vector(llvm::seq<int64_t>(dims, whole.getRank())));
  auto total = ir::SumOp::create(builder, sum.getLoc(), parts, llvm::to_vector(llvm::seq<int64_t>(0, dims)));
  sum.replaceAllUsesWith(total.getResult());
  sum.erase();
}

void splitLongSums(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (auto sum = dyn_cast<ir::SumOp>(op))
      split(sum);
}

} // namespace gpuc
