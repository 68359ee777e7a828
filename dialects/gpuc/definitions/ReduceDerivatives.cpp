//===- ReduceDerivatives.cpp - VJPs of reductions and softmax ---------------===//

#include "dialects/gpuc/VjpHelpers.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace gpuc::ir {

GPUC_RESIDUALS(SumOp)
GPUC_VJP_BODY(SumOp) { return Cotangents{broadcastAlong(ct, op.getDims(), shapeOf(op.getOperand()))}; }

GPUC_RESIDUALS(AllReduceOp)
GPUC_VJP_BODY(AllReduceOp) { return Cotangents{ct.make<AllReduceOp>(ct.type(), ct.value())}; }

GPUC_RESIDUALS(MeanOp)
GPUC_VJP_BODY(MeanOp) {
  FailureOr<int64_t> count = reducedCount(op, op.getOperand(), op.getDims());
  if (failed(count))
    return failure();
  return Cotangents{broadcastAlong(ct / static_cast<double>(*count), op.getDims(), shapeOf(op.getOperand()))};
}

/// Each of the elements that equal the extreme gets the same share.
template <typename Op> static Cotangents shareAmongTies(Op op, Expr ct) {
  Expr x = ct.at(op.getOperand());
  Expr isExtreme = x == broadcastAlong(ct.at(op.getResult()), op.getDims(), x.shape());
  Expr ties = sum(cast(isExtreme, x.elementType()), op.getDims());
  return {select(isExtreme, broadcastAlong(ct / ties, op.getDims(), x.shape()), 0.0)};
}

GPUC_RESIDUALS(ReduceMaxOp, getOperand(), getResult())
GPUC_VJP_BODY(ReduceMaxOp) { return shareAmongTies(op, ct); }
GPUC_RESIDUALS(ReduceMinOp, getOperand(), getResult())
GPUC_VJP_BODY(ReduceMinOp) { return shareAmongTies(op, ct); }

//===----------------------------------------------------------------------===//
// Product
//===----------------------------------------------------------------------===//

/// Ones in front of x (..., n) along its last dimension, `count` of the last elements dropped.
static Expr shiftInOnes(Expr x, int64_t count) {
  int64_t last = x.rank() - 1;
  Shape low(x.rank(), 0), none(x.rank(), 0), limits(x.rank(), -1), strides(x.rank(), 1);
  low[last] = count;
  limits[last] = x.shape()[last] - count;
  Expr kept = x.make<SliceOp>(x.value(), none, limits, strides);
  return x.make<PadOp>(kept.value(), low, none, none, APFloat(1.0));
}

/// Product of the elements before each one along the last dimension, by doubling [Hillis and Steele 1986].
static Expr productBefore(Expr x) {
  int64_t extent = x.shape().back();
  Expr product = shiftInOnes(x, 1);
  for (int64_t distance = 1; distance < extent; distance *= 2)
    product = product * shiftInOnes(product, distance);
  return product;
}

/// The derivative by an element is the product of all others. It is built from the products before and after,
/// not by division, so that zeros are right in derivatives of every order.
GPUC_RESIDUALS(ProdOp, getOperand())
GPUC_VJP_BODY(ProdOp) {
  Expr x = ct.at(op.getOperand());
  FailureOr<int64_t> count = reducedCount(op, op.getOperand(), op.getDims());
  if (failed(count))
    return failure();
  Expr spread = broadcastAlong(ct, op.getDims(), x.shape());
  if (*count <= 1)
    return Cotangents{spread};
  // The reduced dimensions move to the end and become one.
  Shape kept = otherDims(x.rank(), op.getDims()), order = kept;
  llvm::append_range(order, op.getDims());
  Expr moved = transpose(x, order);
  Shape flat(moved.shape().take_front(kept.size()));
  flat.push_back(*count);
  Expr rows = reshape(moved, withShape(x, flat));
  auto reverse = [&](Expr e) { return e.make<ReverseOp>(e.value(), ArrayRef<int64_t>(flat.size() - 1)); };
  Expr others = productBefore(rows) * reverse(productBefore(reverse(rows)));
  return Cotangents{spread * transpose(reshape(others, moved.type()), invertPermutationVector(order))};
}

//===----------------------------------------------------------------------===//
// Along a dimension
//===----------------------------------------------------------------------===//

/// Each element went into every later sum.
GPUC_RESIDUALS(CumsumOp)
GPUC_VJP_BODY(CumsumOp) {
  auto reverse = [&](Expr e) { return e.make<ReverseOp>(e.value(), ArrayRef<int64_t>(op.getDim())); };
  return Cotangents{reverse(ct.make<CumsumOp>(ct.type(), reverse(ct).value(), op.getDim()))};
}

static Expr sumAlong(Expr x, int64_t dim) { return broadcastAlong(sum(x, dim), dim, x.shape()); }

/// y (ct - Σ ct y)
GPUC_RESIDUALS(SoftmaxOp, getResult())
GPUC_VJP_BODY(SoftmaxOp) {
  Expr y = ct.at(op.getResult());
  return Cotangents{y * (ct - sumAlong(ct * y, op.getDim()))};
}

/// ct - exp(y) Σ ct
GPUC_RESIDUALS(LogSoftmaxOp, getResult())
GPUC_VJP_BODY(LogSoftmaxOp) {
  return Cotangents{ct - exp(ct.at(op.getResult())) * sumAlong(ct, op.getDim())};
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

/// The same mask, drawn again: same id.
GPUC_RESIDUALS(DropoutOp)
GPUC_VJP_BODY(DropoutOp) {
  return Cotangents{ct.make<DropoutOp>(ct.type(), ct.value(), op.getP(), op.getId())};
}

} // namespace gpuc::ir
