//===- Losses.cpp - What losses and metrics by class mean, and their VJPs ---===//
//
// A row counts unless the mask leaves it out or its label is the ignored one or no class at all. Rows that do
// not count are taken out by select, so that a NaN in them reaches nothing.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/ExprHelpers.h"
#include "dialects/gpuc/VjpHelpers.h"

using namespace mlir;

namespace gpuc::ir {

/// Which labels (rows) count: i1 of the labels' shape.
static Expr countedLabels(Expr labels, Value mask, int64_t classes, int64_t ignored) {
  Expr counted = (labels >= 0) & (labels < static_cast<double>(classes));
  if (ignored >= 0 && ignored < classes)
    counted = counted & (labels != static_cast<double>(ignored));
  return mask ? counted & broadcast(labels.at(mask), {0}, labels.shape()) : counted;
}

/// Where in logits (…, C) the label of the row is: i1.
static Expr labelPositions(Expr labels, Expr logits) {
  int64_t classes = logits.rank() - 1;
  Expr spread = broadcastAlong(labels, {classes}, logits.shape());
  return spread.make<IotaOp>(spread.type(), classes) == spread;
}

static Expr countTrue(Expr flags, Type element) { return sumAll(cast(flags, element)); }

namespace {
/// The rows of a loss: logits (or their like) and labels; f16 and bf16 are computed as f32.
struct Rows {
  template <typename Op>
  Rows(Op op, Expr operand)
      : logits(widen(operand)), labels(logits.at(op.getLabels())), dim(logits.rank() - 1),
        classes(logits.shape().back()),
        counted(countedLabels(labels, op.getMask(), classes, op.getIgnoreIndex())) {
    if constexpr (requires { op.getWeight(); })
      if (op.getWeight())
        weight = stopGradient(widen(logits.at(op.getWeight())));
  }

  /// The class weights beside each logit, or 1.
  Expr weights() const {
    return weight.value() ? broadcast(weight, {dim}, logits.shape()) : logits.constant(1);
  }
  Expr weighted(Expr x) const { return weight.value() ? x * weights() : x; }

  /// x at the label of each row. select, not a product with the one-hot row: 0 · -∞ would be NaN.
  Expr atLabel(Expr x) const { return sum(select(labelPositions(labels, logits), x, 0.0), dim); }

  /// (Σ loss, Σ weight of the label) over the rows that count.
  SmallVector<Value> sumCounted(Expr loss) const {
    Expr total = sumAll(select(counted, loss, 0.0));
    if (!weight.value())
      return {total, countTrue(counted, logits.elementType())};
    Expr own = logits.make<GatherOp>(weight.value(), labels.value(), 0);
    return {total, sumAll(select(counted, own, 0.0))};
  }

  /// The cotangent of the logits in the rows that count, and 0 elsewhere, in the type of `operand`.
  Value spreadCotangent(Expr slope, Value cotangent, Value operand) const {
    Expr scaled = slope * broadcastScalar(logits.at(cotangent), logits.shape());
    Expr where = broadcastAlong(counted, {dim}, logits.shape());
    return cast(select(where, scaled, 0.0), tensorType(operand).getElementType());
  }

  Expr logits, labels;
  int64_t dim, classes;
  Expr counted, weight; // weight may be null
};
} // namespace

//===----------------------------------------------------------------------===//
// Cross entropy
//===----------------------------------------------------------------------===//

SmallVector<Value> CrossEntropyOp::decompose(OpBuilder &builder) {
  Rows rows(*this, Expr(builder, getLoc(), getLogits()));
  double smoothing = getSmoothing().convertToDouble();
  if (smoothing == 0 && !rows.weight.value()) {
    // -log p of the label alone. The logarithm is taken off behind the sum, so that both sums are one sweep.
    Expr difference = lessLargest(rows.logits, rows.dim);
    return rows.sumCounted(log(sum(exp(difference), rows.dim)) - rows.atLabel(difference));
  }
  Expr logProbabilities =
      rows.weighted(rows.logits.make<LogSoftmaxOp>(rows.logits.type(), rows.logits.value(), rows.dim));
  Expr loss = -rows.atLabel(logProbabilities);
  if (smoothing != 0)
    loss = (1 - smoothing) * loss -
           (smoothing / static_cast<double>(rows.classes)) * sum(logProbabilities, rows.dim);
  return rows.sumCounted(loss);
}

/// With target the factors a of -log p: (Σ a · softmax(logits) - a), times the cotangent of the sum. Without
/// weights Σ a is 1. The count is constant.
GPUC_VJP_BODY(CrossEntropyOp) {
  Rows rows(op, ct.at(op.getLogits()));
  double smoothing = op.getSmoothing().convertToDouble(), uniform = smoothing / rows.classes;
  Expr target =
      rows.weighted(select(labelPositions(rows.labels, rows.logits),
                           rows.logits.constant(1 - smoothing + uniform), rows.logits.constant(uniform)));
  Expr probabilities = rows.logits.make<SoftmaxOp>(rows.logits.type(), rows.logits.value(), rows.dim);
  if (rows.weight.value())
    probabilities = probabilities * broadcastAlong(sum(target, rows.dim), {rows.dim}, rows.logits.shape());
  return Cotangents{rows.spreadCotangent(probabilities - target, ct, op.getLogits())};
}

//===----------------------------------------------------------------------===//
// Negative log-likelihood
//===----------------------------------------------------------------------===//

SmallVector<Value> NllOp::decompose(OpBuilder &builder) {
  Rows rows(*this, Expr(builder, getLoc(), getLogProbabilities()));
  return rows.sumCounted(-rows.atLabel(rows.weighted(rows.logits)));
}

SmallVector<Value> NllOp::getResiduals() { return SmallVector<Value>(llvm::drop_begin(getOperands())); }

/// -weight at the label, times the cotangent of the sum. The values of the operand have no part in it: a
/// constant of the wide type stands for them.
GPUC_VJP_BODY(NllOp) {
  Expr zeros = ct.constant(withShape(ct, shapeOf(op.getLogProbabilities())), 0.0);
  Rows rows(op, zeros);
  Expr slope = select(labelPositions(rows.labels, rows.logits), -rows.weights(), 0.0);
  return Cotangents{rows.spreadCotangent(slope, ct, op.getLogProbabilities())};
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
