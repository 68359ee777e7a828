//===- NetworkOps.cpp - Types and verifiers of losses and softmax -----------===//

#include "dialects/gpuc/TypeChecks.h"

using namespace mlir;

namespace gpuc::ir {

LogicalResult SoftmaxOp::verify() {
  return checkDim(getLoc(), getOperationName(), "along_dim_C1", getDim(), getType());
}
LogicalResult LogSoftmaxOp::verify() {
  return checkDim(getLoc(), getOperationName(), "along_dim_C1", getDim(), getType());
}

/// Maximum, difference, exponential, sum and quotient (or logarithm and difference).
int64_t SoftmaxOp::getFlops() { return 5 * elementCount(getType()); }
int64_t LogSoftmaxOp::getFlops() { return 5 * elementCount(getType()); }

/// Half-precision losses would lose what they sum, so that f16 and bf16 are summed as f32.
static RankedTensorType lossType(Value operand) {
  Type element = tensorType(operand).getElementType();
  if (element.getIntOrFloatBitWidth() < 32)
    element = Float32Type::get(operand.getContext());
  return RankedTensorType::get({}, element);
}

#define GPUC_LOSS(OP, OPERAND)                                                                               \
  LogicalResult OP::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,                \
                                     SmallVectorImpl<Type> &types) {                                         \
    types.assign(2, lossType(adaptor.OPERAND()));                                                            \
    return success();                                                                                        \
  }                                                                                                          \
  int64_t OP::getRows() {                                                                                    \
    ArrayRef<int64_t> shape = shapeOf(OPERAND());                                                            \
    return shape.empty() ? 1 : shape.front();                                                                \
  }

GPUC_LOSS(CrossEntropyOp, getLogits)
GPUC_LOSS(MseOp, getPrediction)
GPUC_LOSS(AccuracyOp, getLogits)
#undef GPUC_LOSS

int64_t CrossEntropyOp::getFlops() { return 6 * elementCount(getLogits().getType()); }
int64_t MseOp::getFlops() { return 3 * elementCount(getPrediction().getType()); }
int64_t AccuracyOp::getFlops() { return elementCount(getLogits().getType()); }

/// One i1 for each row.
static LogicalResult checkMask(LossOpInterface loss, StringRef label, Value rows) {
  Value mask = loss.getRowMask();
  if (!mask)
    return success();
  auto expected = RankedTensorType::get(shapeOf(rows).take_front(1), IntegerType::get(rows.getContext(), 1));
  return checkType(loss, label, "mask", mask.getType(), expected);
}

/// Labels have the shape of the logits without the classes, which are the last dimension.
static LogicalResult checkLabels(Operation *op, StringRef prefix, Value logits, Value labels) {
  ArrayRef<int64_t> shape = shapeOf(logits);
  if (shape.size() < 2)
    return op->emitOpError() << "logits must be rows by classes, but are " << logits.getType() << " ["
                             << prefix << "_C1]";
  return checkType(op, (prefix + "_C2").str(), "labels", labels.getType(),
                   withShape(labels, shape.drop_back()));
}

LogicalResult CrossEntropyOp::verify() {
  if (failed(checkLabels(*this, "cross_entropy", getLogits(), getLabels())) ||
      failed(checkMask(*this, "cross_entropy_C3", getLogits())))
    return failure();
  double smoothing = getSmoothing().convertToDouble();
  if (smoothing >= 0 && smoothing <= 1)
    return success();
  return emitOpError() << "smoothing must lie in [0, 1], but is " << smoothing << " [cross_entropy_C4]";
}

LogicalResult MseOp::verify() {
  if (shapeOf(getPrediction()).empty() && getMask())
    return emitOpError() << "prediction " << getPrediction().getType() << " has no rows to mask [mse_C1]";
  if (failed(checkType(*this, "mse_C2", "target", getTarget().getType(), getPrediction().getType())))
    return failure();
  return checkMask(*this, "mse_C3", getPrediction());
}

LogicalResult AccuracyOp::verify() {
  if (failed(checkLabels(*this, "accuracy", getLogits(), getLabels())))
    return failure();
  return checkMask(*this, "accuracy_C3", getLogits());
}

} // namespace gpuc::ir
