//===- AttentionDecompositions.cpp - What attention means, and its VJP ------===//
//
// The definitions hold the scores [B, H, T, S] in memory; a target with a kernel of its own keeps the ops
// whole. -∞ is what a masked score is; a row of nothing else would make NaN of -∞ - (-∞), so that its largest
// score is taken for 0, its sum for 1.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/ExprHelpers.h"
#include "dialects/gpuc/definitions/DefinitionVjp.h"

#include <limits>

using namespace mlir;

namespace gpuc::ir {

static constexpr double minusInfinity = -std::numeric_limits<double>::infinity();
/// Batch, heads, queries, keys: the dimensions of scores.
static constexpr int64_t queryDim = 2, keyDim = 3;

static Expr matmul(Expr lhs, bool transposeLhs, Expr rhs, bool transposeRhs) {
  return lhs.make<MatmulOp>(lhs.value(), rhs.value(), transposeLhs, transposeRhs);
}

namespace {

/// The operands of AttentionOp or AttentionGradientOp, f16 and bf16 as f32, key and value as if each head of
/// query had its own.
template <typename Op> class Heads {
public:
  Heads(OpBuilder &builder, Op op)
      : op_(op), query(widen(Expr(builder, op.getLoc(), op.getQuery()))), key(perHead(op.getKey())),
        value(perHead(op.getValue())), scale(op.getScaleOrDefault()) {}

  /// scale · query · keyᵀ + mask, -∞ where nothing is seen.
  Expr scores() const {
    Expr s = matmul(query, false, key, true) * scale;
    if (Value mask = op_.getMask()) {
      Expr spread = broadcastTo(query.at(mask), s.shape());
      s = hasFloatMask() ? s + widen(spread) : select(spread, s, minusInfinity);
    }
    if (!op_.getCausal())
      return s;
    auto index = withShape(s, s.shape()).clone(IntegerType::get(s.type().getContext(), 32));
    Expr isPast = s.make<IotaOp>(index, keyDim) <= s.make<IotaOp>(index, queryDim);
    return select(isPast, s, minusInfinity);
  }

  Expr spread(Expr row) const {
    Shape shape(row.shape());
    shape.push_back(key.shape()[queryDim]);
    return broadcastAlong(row, keyDim, shape);
  }

  Expr drop(Expr probabilities) const {
    if (op_.getDropout().isZero())
      return probabilities;
    return probabilities.make<DropoutOp>(probabilities.type(), probabilities.value(), op_.getDropout(),
                                         static_cast<int64_t>(op_.getId()));
  }

  bool hasFloatMask() const {
    return op_.getMask() && isa<FloatType>(tensorType(op_.getMask()).getElementType());
  }

  /// In the type of one of the op's operands; what heads share is added up.
  Value narrowed(Expr cotangent, Value operand) const {
    ArrayRef<int64_t> heads = cotangent.shape();
    int64_t groups = shapeOf(operand)[1];
    if (groups != heads[1]) {
      Shape split{heads[0], groups, heads[1] / groups, heads[2], heads[3]};
      cotangent = sum(reshape(cotangent, withShape(cotangent, split)), 2);
    }
    return cast(cotangent, tensorType(operand).getElementType());
  }

private:
  Expr perHead(Value operand) const {
    Expr x = widen(query.at(operand));
    Shape shape(x.shape());
    int64_t heads = query.shape()[1], groups = shape[1];
    if (groups == heads)
      return x;
    Shape split{shape[0], groups, heads / groups, shape[2], shape[3]};
    shape[1] = heads;
    return reshape(broadcastAlong(x, 2, split), withShape(x, shape));
  }

  mutable Op op_;

public:
  Expr query, key, value;
  double scale;
};

} // namespace

SmallVector<Value> AttentionOp::decompose(OpBuilder &builder) {
  Heads heads(builder, *this);
  Expr scores = heads.scores();
  Expr largest = stopGradient(scores.make<ReduceMaxOp>(scores.value(), keyDim));
  Expr shift = select(largest == minusInfinity, 0.0, largest);
  Expr exponentials = exp(scores - heads.spread(shift)), total = sum(exponentials, keyDim);
  Expr seesNone = total == 0.0, divisor = select(seesNone, 1.0, total);
  Expr probabilities = heads.drop(exponentials / heads.spread(divisor));
  Expr result = matmul(probabilities, false, heads.value, false);
  Expr sums = shift + log(divisor);
  return {cast(result, tensorType(getResult()).getElementType()),
          select(seesNone, sums.constant(minusInfinity), sums)};
}

/// Without dropout.
SmallVector<Value> AttentionOp::buildInference(OpBuilder &builder) {
  auto op = cast<AttentionOp>(builder.clone(**this));
  op.setDropout(APFloat(0.0));
  op.setId(0);
  return {op.getResult(), op.getLogSumExp()};
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

/// Cotangents of query, key, value and mask (null if it is no number) from those of the result and of the
/// logarithms (either may be null). With P = exp(S - log Σ), the latter adds P · dlog to dS.
template <typename Op>
static SmallVector<Value> attentionCotangents(OpBuilder &builder, Op op, Value result, Value logSumExp,
                                              Value resultCotangent, Value logCotangent) {
  Heads heads(builder, op);
  Expr log = heads.query.at(logSumExp);
  Expr p = exp(heads.scores() - heads.spread(select(log == minusInfinity, 0.0, log)));
  Expr slope, ct; // dS / P, and dO
  if (resultCotangent) {
    ct = widen(log.at(resultCotangent));
    Expr delta = sum(ct * widen(log.at(result)), keyDim);
    if (logCotangent)
      delta = delta - log.at(logCotangent);
    slope = heads.drop(matmul(ct, false, heads.value, true)) - heads.spread(delta);
  } else {
    slope = heads.spread(log.at(logCotangent));
  }
  Expr ds = p * slope;
  Expr scaled = ds * heads.scale;
  SmallVector<Value> cotangents{heads.narrowed(matmul(scaled, false, heads.key, false), op.getQuery()),
                                heads.narrowed(matmul(scaled, true, heads.query, false), op.getKey()),
                                Value(), Value()};
  if (resultCotangent)
    cotangents[2] = heads.narrowed(matmul(heads.drop(p), true, ct, false), op.getValue());
  if (heads.hasFloatMask())
    cotangents[3] = cast(sumTo(ds, shapeOf(op.getMask())), tensorType(op.getMask()).getElementType());
  return cotangents;
}

SmallVector<Value> AttentionOp::getResiduals() {
  SmallVector<Value> values(getOperands());
  values.append({getResult(), getLogSumExp()});
  return values;
}

LogicalResult AttentionOp::buildVJP(OpBuilder &builder, ValueRange cotangents,
                                    SmallVectorImpl<Value> &operandCotangents) {
  operandCotangents.append((*this)->getNumOperands(), Value());
  if (!cotangents[0] && !cotangents[1])
    return success();
  SmallVector<Value> computed;
  if (cotangents[1]) {
    computed = attentionCotangents(builder, *this, getResult(), getLogSumExp(), cotangents[0], cotangents[1]);
  } else {
    SmallVector<Type> types{getQuery().getType(), getKey().getType(), getValue().getType()};
    if (getMask() && isa<FloatType>(tensorType(getMask()).getElementType()))
      types.push_back(getMask().getType());
    else
      types.push_back(Type());
    auto gradient =
        AttentionGradientOp::create(builder, getLoc(), types[0], types[1], types[2], types[3], cotangents[0],
                                    getResult(), getLogSumExp(), getQuery(), getKey(), getValue(), getMask(),
                                    getScaleAttr(), getCausalAttr(), getDropoutAttr(), getIdAttr());
    llvm::append_range(computed, gradient.getResults());
  }
  for (auto [slot, cotangent] : llvm::zip(operandCotangents, computed))
    slot = cotangent;
  return success();
}

SmallVector<Value> AttentionGradientOp::decompose(OpBuilder &builder) {
  SmallVector<Value> cotangents =
      attentionCotangents(builder, *this, getResult(), getLogSumExp(), getCotangent(), /*logCotangent=*/{});
  cotangents.resize((*this)->getNumResults());
  return cotangents;
}

LogicalResult AttentionGradientOp::buildVJP(OpBuilder &builder, ValueRange cotangents,
                                            SmallVectorImpl<Value> &operandCotangents) {
  return buildDefinitionVJP(*this, builder, cotangents, operandCotangents);
}

} // namespace gpuc::ir
