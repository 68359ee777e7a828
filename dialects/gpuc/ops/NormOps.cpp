//===- NormOps.cpp - Types, costs and verifiers of normalisations -----------===//

#include "dialects/gpuc/ExprHelpers.h"

using namespace mlir;

namespace gpuc::ir {

/// The operand's type and that of `statistics` results with one number a row.
template <typename Op>
static FailureOr<Types> inferRows(std::optional<Location> location, Value operand, int64_t dim,
                                  int statistics) {
  StringRef name = Op::getOperationName();
  if (failed(checkDim(location, name, labelOf(name, 1), dim, operand.getType())))
    return failure();
  for (int64_t extent : shapeOf(operand).drop_front(dim))
    if (extent == 0 || ShapedType::isDynamic(extent))
      return emitTypeError<Op>(location, "cannot normalise ", operand.getType(), " over its dimensions from ",
                               dim, ": one is ", extentText(extent), " [", labelOf(name, 2), "]");
  Types types{operand.getType()};
  types.append(statistics, wideType(operand, shapeOf(operand).take_front(dim)));
  return types;
}

FailureOr<Types> LayerNormOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  if (failed(checkNeeded<LayerNormOp>(location, adaptor, {0})))
    return failure();
  return inferRows<LayerNormOp>(location, adaptor.getOperand(), adaptor.getDim(), 2);
}
FailureOr<Types> RmsNormOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  return inferRows<RmsNormOp>(location, adaptor.getOperand(), adaptor.getDim(), 1);
}

FailureOr<Types> BatchNormOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  if (failed(checkNeeded<BatchNormOp>(location, adaptor, {0, 1, 2})))
    return failure();
  Value operand = adaptor.getOperand();
  ArrayRef<int64_t> shape = shapeOf(operand);
  if (shape.size() < 2)
    return emitTypeError<BatchNormOp>(location, "operand must be batch by channels, but is ",
                                      operand.getType(), " [batch_norm_C1]");
  if (shape.front() == 0 || llvm::is_contained(shape.drop_front(2), 0))
    return emitTypeError<BatchNormOp>(location, "operand ", operand.getType(),
                                      " has no elements in a channel [batch_norm_C5]");
  Types types{operand.getType()};
  types.append(4, wideType(operand, shape[1]));
  return types;
}

static LogicalResult checkOptional(Operation *op, StringRef label, StringRef name, Value value,
                                   Type expected) {
  return value ? checkType(op, label, name, value.getType(), expected) : success();
}

LogicalResult LayerNormOp::verify() {
  Type affine = withShape(getOperand(), shapeOf(getOperand()).drop_front(getDim()));
  if (failed(checkOptional(*this, "layer_norm_C3", "weight", getWeight(), affine)) ||
      failed(checkOptional(*this, "layer_norm_C3", "bias", getBias(), affine)))
    return failure();
  return checkNotNegative(*this, "layer_norm_C4", "eps", getEps());
}

LogicalResult RmsNormOp::verify() {
  Type affine = withShape(getOperand(), shapeOf(getOperand()).drop_front(getDim()));
  if (failed(checkOptional(*this, "rms_norm_C3", "weight", getWeight(), affine)))
    return failure();
  return checkNotNegative(*this, "rms_norm_C4", "eps", getEps());
}

LogicalResult BatchNormOp::verify() {
  int64_t channels = shapeOf(getOperand())[1];
  Type affine = withShape(getOperand(), channels), statistic = wideType(getOperand(), channels);
  if (failed(checkType(*this, "batch_norm_C2", "running_mean", getRunningMean().getType(), statistic)) ||
      failed(
          checkType(*this, "batch_norm_C2", "running_variance", getRunningVariance().getType(), statistic)) ||
      failed(checkOptional(*this, "batch_norm_C3", "weight", getWeight(), affine)) ||
      failed(checkOptional(*this, "batch_norm_C3", "bias", getBias(), affine)) ||
      failed(checkNotNegative(*this, "batch_norm_C4", "eps", getEps())))
    return failure();
  if (failed(checkOptional(*this, "batch_norm_C6", "rows", getRows(),
                           RankedTensorType::get({}, IntegerType::get(getContext(), 32)))))
    return failure();
  return checkFraction(*this, "batch_norm_C4", "momentum", getMomentum());
}

/// Mean, difference, square, sum, product, and product and sum with weight and bias.
int64_t LayerNormOp::getFlops() { return 7 * elementCount(getOperand().getType()); }
int64_t BatchNormOp::getFlops() { return 7 * elementCount(getOperand().getType()); }
/// Square, sum and two products.
int64_t RmsNormOp::getFlops() { return 4 * elementCount(getOperand().getType()); }

} // namespace gpuc::ir
