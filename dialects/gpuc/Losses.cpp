//===- Losses.cpp - What losses and metrics mean, and their VJPs ------------===//
//
// A row counts unless the mask leaves it out or its label is the ignored one or no class at all. Rows that do
// not count are taken out by select, so that a NaN in them reaches nothing.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/VjpHelpers.h"

using namespace mlir;

namespace gpuc::ir {

/// One i1 a row, repeated to the shape of what stands in the rows; null without a mask.
static std::optional<Expr> spreadMask(Expr any, Value mask, ArrayRef<int64_t> shape) {
  return mask ? std::optional(broadcast(any.at(mask), {0}, shape)) : std::nullopt;
}

/// Which labels (rows) count: i1 of the labels' shape.
static Expr countedLabels(Expr labels, Value mask, int64_t classes, int64_t ignored) {
  Expr counted = (labels >= 0) & (labels < static_cast<double>(classes));
  if (ignored >= 0 && ignored < classes)
    counted = counted & (labels != static_cast<double>(ignored));
  std::optional<Expr> spread = spreadMask(labels, mask, labels.shape());
  return spread ? counted & *spread : counted;
}

/// Where in logits (…, C) the label of the row is: i1.
static Expr labelPositions(Expr labels, Expr logits) {
  int64_t classes = logits.rank() - 1;
  Expr spread = broadcastAlong(labels, {classes}, logits.shape());
  return spread.make<IotaOp>(spread.type(), classes) == spread;
}

/// f16 and bf16 are computed as f32.
static Expr widen(Expr x) {
  bool isHalf = x.elementType().getIntOrFloatBitWidth() < 32;
  return isHalf ? cast(x, Float32Type::get(x.type().getContext())) : x;
}

static Expr countTrue(Expr flags, Type element) { return sumAll(cast(flags, element)); }

//===----------------------------------------------------------------------===//
// Cross entropy
//===----------------------------------------------------------------------===//

SmallVector<Value> CrossEntropyOp::decompose(OpBuilder &builder) {
  Expr logits = widen(Expr(builder, getLoc(), getLogits())), labels = logits.at(getLabels());
  int64_t dim = logits.rank() - 1, classes = logits.shape().back();
  double smoothing = getSmoothing().convertToDouble();
  Expr logProbabilities = logits.make<LogSoftmaxOp>(logits.type(), logits.value(), dim);
  // select, not a product with the one-hot row: 0 · -∞ would be NaN.
  Expr loss = -sum(select(labelPositions(labels, logits), logProbabilities, 0.0), dim);
  if (smoothing != 0)
    loss = (1 - smoothing) * loss - (smoothing / classes) * sum(logProbabilities, dim);
  Expr counted = countedLabels(labels, getMask(), classes, getIgnoreIndex());
  return {sumAll(select(counted, loss, 0.0)), countTrue(counted, logits.elementType())};
}

SmallVector<Value> CrossEntropyOp::getResiduals() {
  SmallVector<Value> values{getLogits(), getLabels()};
  if (getMask())
    values.push_back(getMask());
  return values;
}

/// (softmax(logits) - target) in the rows that count, times the cotangent of the sum. The count is constant.
LogicalResult CrossEntropyOp::buildVJP(OpBuilder &builder, ValueRange cotangents,
                                       SmallVectorImpl<Value> &operandCotangents) {
  operandCotangents.append((*this)->getNumOperands(), Value());
  if (!cotangents[0])
    return success();
  Expr logits = widen(Expr(builder, getLoc(), getLogits())), labels = logits.at(getLabels());
  int64_t dim = logits.rank() - 1, classes = logits.shape().back();
  double smoothing = getSmoothing().convertToDouble(), uniform = smoothing / classes;
  Expr target = select(labelPositions(labels, logits), logits.constant(1 - smoothing + uniform),
                       logits.constant(uniform));
  Expr difference = logits.make<SoftmaxOp>(logits.type(), logits.value(), dim) - target;
  Expr counted =
      broadcastAlong(countedLabels(labels, getMask(), classes, getIgnoreIndex()), {dim}, logits.shape());
  Expr scaled = difference * broadcastScalar(logits.at(cotangents[0]), logits.shape());
  operandCotangents[0] = cast(select(counted, scaled, 0.0), tensorType(getLogits()).getElementType());
  return success();
}

//===----------------------------------------------------------------------===//
// Mean squared error
//===----------------------------------------------------------------------===//

SmallVector<Value> MseOp::decompose(OpBuilder &builder) {
  Expr prediction = widen(Expr(builder, getLoc(), getPrediction()));
  Expr difference = prediction - widen(prediction.at(getTarget()));
  Expr squares = difference * difference;
  std::optional<Expr> counted = spreadMask(prediction, getMask(), prediction.shape());
  if (!counted)
    counted = prediction.make<ConstantOp>(
        withShape(prediction, prediction.shape()).clone(builder.getI1Type()), 1.0);
  else
    squares = select(*counted, squares, 0.0);
  return {sumAll(squares), countTrue(*counted, prediction.elementType())};
}

SmallVector<Value> MseOp::getResiduals() {
  SmallVector<Value> values{getPrediction(), getTarget()};
  if (getMask())
    values.push_back(getMask());
  return values;
}

/// 2 (prediction - target) in the rows that count, times the cotangent of the sum.
LogicalResult MseOp::buildVJP(OpBuilder &builder, ValueRange cotangents,
                              SmallVectorImpl<Value> &operandCotangents) {
  operandCotangents.append((*this)->getNumOperands(), Value());
  if (!cotangents[0])
    return success();
  Expr prediction = widen(Expr(builder, getLoc(), getPrediction()));
  Expr difference = prediction - widen(prediction.at(getTarget()));
  Expr slope = 2 * difference * broadcastScalar(prediction.at(cotangents[0]), prediction.shape());
  if (std::optional<Expr> counted = spreadMask(prediction, getMask(), prediction.shape()))
    slope = select(*counted, slope, 0.0);
  slope = cast(slope, tensorType(getPrediction()).getElementType());
  operandCotangents[0] = slope;
  operandCotangents[1] = -slope;
  return success();
}

//===----------------------------------------------------------------------===//
// Accuracy
//===----------------------------------------------------------------------===//

SmallVector<Value> AccuracyOp::decompose(OpBuilder &builder) {
  Expr logits(builder, getLoc(), getLogits()), labels = logits.at(getLabels());
  int64_t dim = logits.rank() - 1, classes = logits.shape().back();
  Expr counted = countedLabels(labels, getMask(), classes, getIgnoreIndex());
  Expr best = logits.make<ArgmaxOp>(logits.value(), dim);
  Expr hit = (best == cast(labels, best.elementType())) & counted;
  Type element = tensorType(getSum()).getElementType();
  return {countTrue(hit, element), countTrue(counted, element)};
}

} // namespace gpuc::ir
