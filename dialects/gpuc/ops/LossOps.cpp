//===- LossOps.cpp - Types, costs and verifiers of losses -------------------===//

#include "dialects/gpuc/ExprHelpers.h"
#include "dialects/gpuc/NumberText.h"

using namespace mlir;

namespace gpuc::ir {

//===----------------------------------------------------------------------===//
// Types and costs
//===----------------------------------------------------------------------===//

// Half-precision losses would lose what they sum, so that f16 and bf16 are summed as f32.
#define GPUC_LOSS(OP, OPERAND, FLOPS)                                                                        \
  FailureOr<Types> OP::inferTypes(std::optional<Location> location, Adaptor adaptor) {                       \
    if (failed(checkNeeded<OP>(location, adaptor, {0, 1})))                                                  \
      return failure();                                                                                      \
    return Types(2, wideType(adaptor.OPERAND(), {}));                                                        \
  }                                                                                                          \
  int64_t OP::getFlops() { return (FLOPS) * elementCount(OPERAND().getType()); }

GPUC_LOSS(CrossEntropyOp, getLogits, 6)
GPUC_LOSS(NllOp, getLogProbabilities, 1)
GPUC_LOSS(AccuracyOp, getLogits, 1)
GPUC_LOSS(MseOp, getPrediction, 3)
GPUC_LOSS(L1Op, getPrediction, 3)
GPUC_LOSS(HuberOp, getPrediction, 6)
GPUC_LOSS(BceWithLogitsOp, getPrediction, 9)
#undef GPUC_LOSS

//===----------------------------------------------------------------------===//
// By class
//===----------------------------------------------------------------------===//

/// One i1 for each row.
static LogicalResult checkMask(LossOpInterface loss, const Twine &label, Value rows) {
  Value mask = loss.getRowMask();
  if (!mask)
    return success();
  auto expected = RankedTensorType::get(shapeOf(rows).take_front(1), IntegerType::get(rows.getContext(), 1));
  return checkType(loss, label.str(), "mask", mask.getType(), expected);
}

/// Labels have the shape of the logits without the classes, which are the last dimension; C1 to C3 of
/// `prefix`.
static LogicalResult checkRows(LossOpInterface loss, StringRef prefix, StringRef name, Value logits,
                               Value labels) {
  ArrayRef<int64_t> shape = shapeOf(logits);
  if (shape.size() < 2 || shape.back() == 0)
    return loss->emitOpError() << name << " must be rows by at least one class, but are " << logits.getType()
                               << " [" << prefix << "_C1]";
  if (failed(checkType(loss, (prefix + "_C2").str(), "labels", labels.getType(),
                       withShape(labels, shape.drop_back()))))
    return failure();
  return checkMask(loss, prefix + "_C3", logits);
}

/// One number for each class.
static LogicalResult checkWeight(Operation *op, StringRef label, Value logits, Value weight) {
  if (!weight)
    return success();
  return checkType(op, label, "weight", weight.getType(), withShape(logits, shapeOf(logits).take_back()));
}

LogicalResult CrossEntropyOp::verify() {
  if (failed(checkRows(*this, "cross_entropy", "logits", getLogits(), getLabels())) ||
      failed(checkWeight(*this, "cross_entropy_C5", getLogits(), getWeight())))
    return failure();
  return checkFraction(*this, "cross_entropy_C4", "smoothing", getSmoothing());
}

LogicalResult NllOp::verify() {
  if (failed(checkRows(*this, "nll", "log_probabilities", getLogProbabilities(), getLabels())))
    return failure();
  return checkWeight(*this, "nll_C4", getLogProbabilities(), getWeight());
}

LogicalResult AccuracyOp::verify() {
  return checkRows(*this, "accuracy", "logits", getLogits(), getLabels());
}

//===----------------------------------------------------------------------===//
// By element
//===----------------------------------------------------------------------===//

static LogicalResult checkElements(LossOpInterface loss, Value prediction, Value target) {
  if (shapeOf(prediction).empty() && loss.getRowMask())
    return loss->emitOpError() << "prediction " << prediction.getType()
                               << " has no rows to mask [element_loss_C1]";
  if (failed(checkType(loss, "element_loss_C2", "target", target.getType(), prediction.getType())))
    return failure();
  return checkMask(loss, "element_loss_C3", prediction);
}

LogicalResult MseOp::verify() { return checkElements(*this, getPrediction(), getTarget()); }
LogicalResult L1Op::verify() { return checkElements(*this, getPrediction(), getTarget()); }

LogicalResult HuberOp::verify() {
  if (failed(checkElements(*this, getPrediction(), getTarget())))
    return failure();
  if (getDelta().convertToDouble() > 0)
    return success();
  return emitOpError() << "delta must be greater than 0, but is " << numberText(getDelta().convertToDouble())
                       << " [huber_C1]";
}

LogicalResult BceWithLogitsOp::verify() {
  if (failed(checkElements(*this, getPrediction(), getTarget())))
    return failure();
  Value weight = getPositiveWeight();
  if (!weight || (tensorType(weight).getElementType() == tensorType(getPrediction()).getElementType() &&
                  isBroadcastable(shapeOf(weight), shapeOf(getPrediction()))))
    return success();
  return emitOpError() << "positive_weight " << weight.getType() << " cannot be broadcast to the prediction "
                       << getPrediction().getType() << " [bce_with_logits_C1]";
}

} // namespace gpuc::ir
