//===- Decompositions.cpp - What composite ops mean in simpler ones ---------===//
//
// Losses have theirs in Losses.cpp, random ops in RandomDecompositions.cpp, optimizers in
// UpdateDecompositions.cpp.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/ExprHelpers.h"

#include <numbers>

using namespace mlir;

namespace gpuc::ir {

#define GPUC_DEFINITION(OP, ...)                                                                             \
  SmallVector<Value> OP::decompose(OpBuilder &builder) {                                                     \
    Expr x(builder, getLoc(), getOperand());                                                                 \
    return {__VA_ARGS__};                                                                                    \
  }

static Expr gelu(Expr x) { return x * (0.5 * (1 + erf(x * (std::numbers::sqrt2 / 2)))); }

/// [Hendrycks and Gimpel 2016], as PyTorch's gelu(approximate="tanh").
static Expr geluTanh(Expr x) {
  double sqrtTwoOverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return 0.5 * (x * (1 + tanh(sqrtTwoOverPi * (x + 0.044715 * (x * x * x)))));
}

GPUC_DEFINITION(LeakyReluOp, select(x > 0, x, x *getSlope().convertToDouble()))
GPUC_DEFINITION(GeluOp, getApproximate() ? geluTanh(x) : gelu(x))
GPUC_DEFINITION(SiluOp, x *sigmoid(x))

/// The sum divided by the number of elements. The batch, if it is among them, must be bound.
SmallVector<Value> MeanOp::decompose(OpBuilder &builder) {
  FailureOr<int64_t> count = reducedCount(*this, getOperand(), getDims());
  if (failed(count))
    return {};
  Expr x(builder, getLoc(), getOperand());
  return {sum(x, getDims()) / static_cast<double>(*count)};
}

SmallVector<Value> SoftmaxOp::decompose(OpBuilder &builder) {
  Expr x(builder, getLoc(), getOperand());
  int64_t dim = getDim();
  Expr exponentials = exp(lessLargest(x, dim));
  return {exponentials / broadcastAlong(sum(exponentials, dim), dim, x.shape())};
}

SmallVector<Value> LogSoftmaxOp::decompose(OpBuilder &builder) {
  Expr x(builder, getLoc(), getOperand());
  int64_t dim = getDim();
  Expr difference = lessLargest(x, dim);
  return {difference - broadcastAlong(log(sum(exp(difference), dim)), dim, x.shape())};
}

} // namespace gpuc::ir
