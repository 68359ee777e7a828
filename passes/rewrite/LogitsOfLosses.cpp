//===- LogitsOfLosses.cpp - Losses of log-softmaxes --------------------------===//
//
// Contract: `nll` of `log_softmax` is `cross_entropy` of what that reads, up to rounding: the logarithms of
// probabilities are then not stored, and logits of a linear layer need not be either. Many models end in a
// log-softmax, as the first examples of PyTorch do.
//
//===----------------------------------------------------------------------===//

#include "passes/rewrite/LogitsOfLosses.h"

#include "dialects/gpuc/TypeChecks.h"

using namespace mlir;

namespace gpuc {

/// Which dimension of a reshape's operand is `dim` of its result; none if that one is cut or put together
/// with others. Where some elements lie along it, equally many do behind it.
static std::optional<int64_t> throughReshape(ir::ReshapeOp reshape, int64_t dim) {
  ArrayRef<int64_t> from = ir::shapeOf(reshape.getOperand()), to = ir::shapeOf(reshape.getResult());
  for (size_t behind = 0; behind < from.size() && behind < to.size(); ++behind) {
    const bool isIt = static_cast<int64_t>(to.size() - 1 - behind) == dim;
    if (from[from.size() - 1 - behind] != to[to.size() - 1 - behind])
      return std::nullopt;
    if (isIt)
      return static_cast<int64_t>(from.size() - 1 - behind);
  }
  return std::nullopt;
}

/// The log-softmax over the classes that the loss reads, if nothing else reads it, nor what is in between.
static ir::LogSoftmaxOp logSoftmaxOf(ir::NllOp loss) {
  Value value = loss.getLogProbabilities();
  int64_t classes = ir::tensorType(value).getRank() - 1;
  while (value.hasOneUse()) {
    Operation *op = value.getDefiningOp();
    if (auto softmax = dyn_cast_or_null<ir::LogSoftmaxOp>(op))
      return static_cast<int64_t>(softmax.getDim()) == classes ? softmax : ir::LogSoftmaxOp();
    if (auto transpose = dyn_cast_or_null<ir::TransposeOp>(op)) {
      classes = transpose.getPermutation()[classes];
    } else if (auto reshape = dyn_cast_or_null<ir::ReshapeOp>(op)) {
      std::optional<int64_t> before = throughReshape(reshape, classes);
      if (!before)
        return {};
      classes = *before;
    } else {
      return {};
    }
    value = op->getOperand(0);
  }
  return {};
}

static void takeLogits(ir::NllOp loss) {
  ir::LogSoftmaxOp softmax = logSoftmaxOf(loss);
  if (!softmax)
    return;
  softmax.replaceAllUsesWith(softmax.getOperand());
  softmax.erase();
  OpBuilder builder(loss);
  auto entropy = ir::CrossEntropyOp::create(builder, loss.getLoc(), loss.getLogProbabilities(),
                                            loss.getLabels(), loss.getWeight(), loss.getMask(),
                                            builder.getF64FloatAttr(0.0), loss.getIgnoreIndexAttr());
  loss.replaceAllUsesWith(entropy);
  loss.erase();
}

void takeLogits(func::FuncOp function) {
  function.walk([](ir::NllOp loss) { takeLogits(loss); });
}

} // namespace gpuc
