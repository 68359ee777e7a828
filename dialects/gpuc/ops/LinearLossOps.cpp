//===- LinearLossOps.cpp - Types, costs and verifiers of fused losses -------===//

#include "dialects/gpuc/ExprHelpers.h"

using namespace mlir;

namespace gpuc::ir {

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Sum and count: f16 and bf16 are summed as f32.
static Types sumsOf(Value hidden) { return Types(2, wideType(hidden, {})); }

FailureOr<Types> LinearCrossEntropyOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  if (failed(checkNeeded<LinearCrossEntropyOp>(location, adaptor, {0, 1, 3})))
    return failure();
  return sumsOf(adaptor.getHidden());
}

FailureOr<Types> LinearAccuracyOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  if (failed(checkNeeded<LinearAccuracyOp>(location, adaptor, {0, 1, 3})))
    return failure();
  return sumsOf(adaptor.getHidden());
}

FailureOr<Types> LinearCrossEntropyGradientOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  if (failed(checkNeeded<LinearCrossEntropyGradientOp>(location, adaptor, {0, 1, 3})))
    return failure();
  Types types = sumsOf(adaptor.getHidden());
  types.append({adaptor.getHidden().getType(), adaptor.getWeight().getType()});
  if (Value bias = adaptor.getBias())
    types.push_back(bias.getType());
  return types;
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// Of `products` with a multiply-add for each feature of each logit, and of what is done to each logit
/// beside.
template <typename Op> static int64_t countFlops(Op op, int64_t products, int64_t pointwise) {
  ArrayRef<int64_t> weight = shapeOf(op.getWeight()); // [classes, features]
  int64_t withBias = op.getBias() ? products : 0;
  return elementCount(op.getLabels().getType()) * weight[0] *
         (2 * products * weight[1] + withBias + pointwise);
}

int64_t LinearCrossEntropyOp::getFlops() { return countFlops(*this, 1, 6); }
/// The exponentials serve both; one logit takes three operations more for its derivative.
int64_t LinearCrossEntropyGradientOp::getFlops() { return countFlops(*this, 3, 9); }
int64_t LinearAccuracyOp::getFlops() { return countFlops(*this, 1, 1); }

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// The label of constraint `number`; a gradient has one, that it is what a linear_cross_entropy is.
template <typename Op> static std::string label(int number) {
  constexpr bool isGradient = std::is_same_v<Op, LinearCrossEntropyGradientOp>;
  return labelOf(Op::getOperationName(), isGradient ? 1 : number);
}

/// Layer, labels, mask and chunk.
template <typename Op> static LogicalResult checkLinear(Op op) {
  RankedTensorType hidden = tensorType(op.getHidden()), weight = tensorType(op.getWeight());
  if (hidden.getRank() < 2 || weight.getRank() != 2 || hidden.getElementType() != weight.getElementType() ||
      hidden.getShape().back() != weight.getDimSize(1))
    return op.emitOpError() << "hidden " << hidden << " and weight " << weight
                            << " do not fit: [rows, features] and [classes, features] of one element type ["
                            << label<Op>(1) << "]";
  if (llvm::is_contained(weight.getShape(), 0))
    return op.emitOpError() << "weight " << weight
                            << " is empty: there must be at least one class and one feature [" << label<Op>(1)
                            << "]";
  Type perClass = withShape(op.getWeight(), {weight.getDimSize(0)});
  if (op.getBias() && failed(checkType(op, label<Op>(2), "bias", op.getBias().getType(), perClass)))
    return failure();
  if (failed(checkType(op, label<Op>(3), "labels", op.getLabels().getType(),
                       withShape(op.getLabels(), hidden.getShape().drop_back()))))
    return failure();
  auto flags = RankedTensorType::get(hidden.getShape().take_front(), IntegerType::get(op.getContext(), 1));
  if (op.getMask() && failed(checkType(op, label<Op>(4), "mask", op.getMask().getType(), flags)))
    return failure();
  if (auto chunk = static_cast<int64_t>(op.getChunk().value_or(1)); chunk < 1)
    return op.emitOpError() << "chunk must be at least 1 row, but is " << chunk << " ["
                            << label<Op>(std::is_same_v<Op, LinearAccuracyOp> ? 5 : 7) << "]";
  return success();
}

template <typename Op> static LogicalResult checkLinearCrossEntropy(Op op) {
  if (failed(checkLinear(op)))
    return failure();
  Type perClass = withShape(op.getWeight(), shapeOf(op.getWeight()).take_front());
  if (op.getClassWeight() &&
      failed(checkType(op, label<Op>(5), "class_weight", op.getClassWeight().getType(), perClass)))
    return failure();
  return checkFraction(op, label<Op>(6), "smoothing", op.getSmoothing());
}

LogicalResult LinearCrossEntropyOp::verify() { return checkLinearCrossEntropy(*this); }
LogicalResult LinearCrossEntropyGradientOp::verify() { return checkLinearCrossEntropy(*this); }
LogicalResult LinearAccuracyOp::verify() { return checkLinear(*this); }

} // namespace gpuc::ir
