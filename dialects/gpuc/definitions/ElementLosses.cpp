//===- ElementLosses.cpp - Losses of pairs of elements, and their VJPs ------===//
//
// What a mask leaves out is taken out by select, so that a NaN in it reaches nothing.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/ExprHelpers.h"
#include "dialects/gpuc/VjpHelpers.h"

using namespace mlir;

namespace gpuc::ir {

static Expr abs(Expr x) { return x.make<AbsOp>(x.value()); }

namespace {
/// Prediction and target, f16 and bf16 as f32, and which elements count.
struct Pairs {
  /// Built where `place` is.
  template <typename Op>
  Pairs(Op op, Expr place)
      : prediction(widen(place.at(op.getPrediction()))), target(widen(place.at(op.getTarget()))) {
    if (op.getMask())
      counted = broadcast(prediction.at(op.getMask()), {0}, prediction.shape());
  }

  Expr onlyCounted(Expr x) const { return counted.value() ? select(counted, x, 0.0) : x; }

  /// (Σ loss, how many) over the elements that count.
  SmallVector<Value> sumCounted(Expr loss) const {
    auto flags = RankedTensorType::get(prediction.shape(), IntegerType::get(loss.type().getContext(), 1));
    Expr all = counted.value() ? counted : prediction.constant(flags, 1);
    return {sumAll(onlyCounted(loss)), sumAll(cast(all, prediction.elementType()))};
  }

  /// slope · cotangent where elements count, else 0, in the type of `operand`.
  Expr spreadCotangent(Expr slope, Value cotangent, Value operand) const {
    Expr scaled = slope * broadcastScalar(prediction.at(cotangent), prediction.shape());
    return cast(onlyCounted(scaled), tensorType(operand).getElementType());
  }

  Expr prediction, target, counted; // counted is null if all do
};
} // namespace

//===----------------------------------------------------------------------===//
// Functions of the difference
//===----------------------------------------------------------------------===//

/// A loss f(d) of the difference d, and its slope f'(d).
#define GPUC_DIFFERENCE_LOSS(OP, VALUE, SLOPE)                                                               \
  SmallVector<Value> OP::decompose(OpBuilder &builder) {                                                     \
    [[maybe_unused]] OP op = *this;                                                                          \
    Pairs pairs(*this, Expr(builder, getLoc(), getPrediction()));                                            \
    Expr d = pairs.prediction - pairs.target;                                                                \
    return pairs.sumCounted(VALUE);                                                                          \
  }                                                                                                          \
  GPUC_VJP_BODY(OP) {                                                                                        \
    Pairs pairs(op, ct);                                                                                     \
    Expr d = pairs.prediction - pairs.target;                                                                \
    Expr slope = pairs.spreadCotangent(SLOPE, ct, op.getPrediction());                                       \
    return Cotangents{slope, -slope};                                                                        \
  }

static Expr huber(Expr d, double delta) {
  return select(abs(d) <= delta, 0.5 * (d * d), delta * (abs(d) - delta / 2));
}
static Expr limited(Expr d, double delta) {
  return d.make<ClampOp>(d.type(), d.value(), APFloat(-delta), APFloat(delta));
}

GPUC_DIFFERENCE_LOSS(MseOp, d *d, 2 * d)
GPUC_DIFFERENCE_LOSS(L1Op, abs(d), sign(d))
GPUC_DIFFERENCE_LOSS(HuberOp, huber(d, op.getDelta().convertToDouble()),
                     limited(d, op.getDelta().convertToDouble()))
#undef GPUC_DIFFERENCE_LOSS

//===----------------------------------------------------------------------===//
// Binary cross entropy
//===----------------------------------------------------------------------===//

/// log(1 + exp(-x)) without overflow.
static Expr softplusOfNegative(Expr x) {
  Expr decay = exp(-abs(x));
  Expr positive = -x;
  return decay.make<Log1pOp>(decay.value()) + positive.make<MaxOp>(positive.value(), x.constant(0).value());
}

/// p beside each element, or null.
static Expr positiveWeight(BceWithLogitsOp op, const Pairs &pairs) {
  if (!op.getPositiveWeight())
    return {};
  Expr weight = stopGradient(widen(pairs.prediction.at(op.getPositiveWeight())));
  return broadcastTo(weight, pairs.prediction.shape());
}

/// w · (1 + (p - 1) · t): the factor of softplus(-x), or of its slope.
static Expr timesFactor(Expr w, Expr p, Expr t) { return p.value() ? w * (1 + (p - 1) * t) : w; }

SmallVector<Value> BceWithLogitsOp::decompose(OpBuilder &builder) {
  Pairs pairs(*this, Expr(builder, getLoc(), getPrediction()));
  Expr x = pairs.prediction, t = pairs.target, p = positiveWeight(*this, pairs);
  return pairs.sumCounted((1 - t) * x + timesFactor(softplusOfNegative(x), p, t));
}

/// By the prediction (1 - t) - (1 + (p - 1) t) sigmoid(-x), by the target (p - 1) softplus(-x) - x.
GPUC_VJP_BODY(BceWithLogitsOp) {
  Pairs pairs(op, ct);
  Expr x = pairs.prediction, t = pairs.target, p = positiveWeight(op, pairs);
  Expr byTarget = p.value() ? (p - 1) * softplusOfNegative(x) - x : -x;
  Expr byPrediction = (1 - t) - timesFactor(sigmoid(-x), p, t);
  return Cotangents{pairs.spreadCotangent(byPrediction, ct, op.getPrediction()),
                    pairs.spreadCotangent(byTarget, ct, op.getTarget())};
}

} // namespace gpuc::ir
