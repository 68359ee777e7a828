//===- NormDecompositions.cpp - What normalisations mean, and their VJPs ----===//
//
// All of them cut the operand into groups: rows of layer_norm and rms_norm, channels of batch_norm. The mean
// square of the centred (rms_norm: of the given) elements of a group gives a factor r, and x̂ is what it
// scales. With g the cotangent of x̂ and n elements in a group,
//
//   dx = r · g + a + x̂ · b,  a = -r · mean(g),  b = -r · mean(g · x̂),
//
// where rms_norm has no a. The statistics are results, and so have cotangents of their own in second
// derivatives: ∂mean/∂x = 1/n, ∂r/∂x = -r² · x̂/n and ∂σ²/∂x = 2 · x̂/(r · n) add to a and b.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/ExprHelpers.h"

using namespace mlir;

namespace gpuc::ir {

static Expr rsqrt(Expr x) { return x.make<RsqrtOp>(x.value()); }

/// a + b, where null is zero.
static Expr plus(Expr a, Expr b) {
  if (!a.value() || !b.value())
    return a.value() ? a : b;
  return a + b;
}

namespace {

/// The operand, f16 and bf16 as f32, in groups of `count` elements along `dims`.
struct Groups {
  Groups(OpBuilder &builder, Location location, Value operand, Shape dims, Shape affineDims, int64_t count)
      : x(widen(Expr(builder, location, operand))), dims(std::move(dims)), affineDims(std::move(affineDims)),
        count(static_cast<double>(count)) {}

  Expr mean(Expr e) const { return sum(e, dims) / count; }
  /// One number a group, beside each of its elements.
  Expr spread(Expr statistic) const { return broadcastAlong(statistic, dims, x.shape()); }
  /// A weight or bias beside each element.
  Expr spreadAffine(Value affine) const { return broadcast(widen(x.at(affine)), affineDims, x.shape()); }

  Expr affine(Expr unit, Value weight, Value bias) const {
    Expr scaled = weight ? unit * spreadAffine(weight) : unit;
    return bias ? scaled + spreadAffine(bias) : scaled;
  }

  /// The cotangent of a weight or bias from that of what is beside each element; null without one.
  Value affineCotangent(Value affine, Expr each) const {
    if (!affine)
      return {};
    Shape others = otherDims(x.rank(), affineDims);
    return cast(others.empty() ? each : sum(each, others), tensorType(affine).getElementType());
  }

  Expr x;
  Shape dims, affineDims; // what a group runs along, and the dimensions of weight and bias
  double count;
};

/// Cotangents of a group's statistics; null is zero.
struct StatisticCotangents {
  Expr mean, inverse, variance;
};

} // namespace

/// The cotangent of x from that of x̂ (null: zero) and of the statistics, in the type of `operand`; null if
/// all are.
static Value groupCotangent(const Groups &groups, Expr g, Expr unit, Expr inverse, bool isCentred,
                            StatisticCotangents statistics, Value operand) {
  Expr a, b, direct;
  if (g.value()) {
    direct = groups.spread(inverse) * g;
    if (isCentred)
      a = -(inverse * groups.mean(g));
    b = -(inverse * groups.mean(g * unit));
  }
  if (statistics.mean.value())
    a = plus(a, statistics.mean / groups.count);
  if (statistics.inverse.value())
    b = plus(b, statistics.inverse * (inverse * inverse) * (-1 / groups.count));
  if (statistics.variance.value())
    b = plus(b, statistics.variance * (2 / groups.count) / inverse);
  if (a.value())
    direct = plus(direct, groups.spread(a));
  if (b.value())
    direct = plus(direct, unit * groups.spread(b));
  return direct.value() ? cast(direct, tensorType(operand).getElementType()).value() : Value();
}

static Value narrowed(Expr x, Value operand) { return cast(x, tensorType(operand).getElementType()); }

static bool isZero(ValueRange cotangents) {
  return llvm::none_of(cotangents, [](Value value) { return value != nullptr; });
}

/// The cotangents of weight, operand number `weightAt`, and of bias, the last one, from that of the result
/// (null: zero); returns the cotangent of x̂.
static Expr unitCotangent(const Groups &groups, Value cotangent, Expr unit, Value weight, Value bias,
                          unsigned weightAt, SmallVectorImpl<Value> &operandCotangents) {
  if (!cotangent)
    return {};
  Expr ct = widen(groups.x.at(cotangent));
  Expr g = weight ? ct * groups.spreadAffine(weight) : ct;
  if (weight)
    operandCotangents[weightAt] = groups.affineCotangent(weight, ct * unit);
  if (bias)
    operandCotangents.back() = groups.affineCotangent(bias, ct);
  return g;
}

/// These, and the weight if there is one.
static SmallVector<Value> withWeight(SmallVector<Value> values, Value weight) {
  if (weight)
    values.push_back(weight);
  return values;
}

static Expr optional(Expr at, Value value) { return value ? at.at(value) : Expr(); }

//===----------------------------------------------------------------------===//
// Layer norm
//===----------------------------------------------------------------------===//

/// The dimensions from `dim` on are the groups, and those of weight and bias.
template <typename Op> static Groups rowsOf(OpBuilder &builder, Op op) {
  Shape dims = llvm::to_vector(llvm::seq<int64_t>(op.getDim(), tensorType(op.getOperand()).getRank()));
  int64_t count = 1;
  for (int64_t extent : shapeOf(op.getOperand()).drop_front(op.getDim()))
    count *= extent;
  return Groups(builder, op.getLoc(), op.getOperand(), dims, dims, count);
}

SmallVector<Value> LayerNormOp::decompose(OpBuilder &builder) {
  Groups rows = rowsOf(builder, *this);
  Expr mean = rows.mean(rows.x);
  Expr centred = rows.x - rows.spread(mean);
  Expr inverse = rsqrt(rows.mean(centred * centred) + getEps().convertToDouble());
  Expr y = rows.affine(centred * rows.spread(inverse), getWeight(), getBias());
  return {narrowed(y, getOperand()), mean, inverse};
}

SmallVector<Value> LayerNormOp::getResiduals() {
  return withWeight({getOperand(), getMean(), getInverseDeviation()}, getWeight());
}

LogicalResult LayerNormOp::buildVJP(OpBuilder &builder, ValueRange cotangents,
                                    SmallVectorImpl<Value> &operandCotangents) {
  operandCotangents.append((*this)->getNumOperands(), Value());
  if (isZero(cotangents))
    return success();
  Groups rows = rowsOf(builder, *this);
  Expr inverse = rows.x.at(getInverseDeviation());
  Expr unit = (rows.x - rows.spread(rows.x.at(getMean()))) * rows.spread(inverse);
  Expr g = unitCotangent(rows, cotangents[0], unit, getWeight(), getBias(), 1, operandCotangents);
  StatisticCotangents statistics{optional(rows.x, cotangents[1]), optional(rows.x, cotangents[2]), {}};
  operandCotangents[0] = groupCotangent(rows, g, unit, inverse, /*isCentred=*/true, statistics, getOperand());
  return success();
}

//===----------------------------------------------------------------------===//
// Root mean square norm
//===----------------------------------------------------------------------===//

SmallVector<Value> RmsNormOp::decompose(OpBuilder &builder) {
  Groups rows = rowsOf(builder, *this);
  Expr inverse = rsqrt(rows.mean(rows.x * rows.x) + getEps().convertToDouble());
  return {narrowed(rows.affine(rows.x * rows.spread(inverse), getWeight(), {}), getOperand()), inverse};
}

SmallVector<Value> RmsNormOp::getResiduals() {
  return withWeight({getOperand(), getInverseRms()}, getWeight());
}

LogicalResult RmsNormOp::buildVJP(OpBuilder &builder, ValueRange cotangents,
                                  SmallVectorImpl<Value> &operandCotangents) {
  operandCotangents.append((*this)->getNumOperands(), Value());
  if (isZero(cotangents))
    return success();
  Groups rows = rowsOf(builder, *this);
  Expr inverse = rows.x.at(getInverseRms());
  Expr unit = rows.x * rows.spread(inverse);
  Expr g = unitCotangent(rows, cotangents[0], unit, getWeight(), /*bias=*/{}, 1, operandCotangents);
  StatisticCotangents statistics{{}, optional(rows.x, cotangents[1]), {}};
  operandCotangents[0] =
      groupCotangent(rows, g, unit, inverse, /*isCentred=*/false, statistics, getOperand());
  return success();
}

//===----------------------------------------------------------------------===//
// Batch norm
//===----------------------------------------------------------------------===//

/// Channels of n elements each; fails if the batch is not bound.
static FailureOr<Groups> channelsOf(OpBuilder &builder, BatchNormOp op) {
  Shape dims = otherDims(tensorType(op.getOperand()).getRank(), 1);
  FailureOr<int64_t> count = reducedCount(op, op.getOperand(), dims);
  if (failed(count))
    return failure();
  return Groups(builder, op.getLoc(), op.getOperand(), dims, /*affineDims=*/{1}, *count);
}

/// From the variance over n elements to the unbiased one, n / (n - 1); of one element there is none.
static double unbiased(const Groups &channels) {
  return channels.count > 1 ? channels.count / (channels.count - 1) : 1;
}

SmallVector<Value> BatchNormOp::decompose(OpBuilder &builder) {
  FailureOr<Groups> channels = channelsOf(builder, *this);
  if (failed(channels))
    return {};
  double momentum = getMomentum().convertToDouble();
  Expr mean = channels->mean(channels->x);
  Expr centred = channels->x - channels->spread(mean);
  Expr variance = channels->mean(centred * centred);
  Expr inverse = rsqrt(variance + getEps().convertToDouble());
  Expr y = channels->affine(centred * channels->spread(inverse), getWeight(), getBias());
  Expr runningMean = (1 - momentum) * mean.at(getRunningMean()) + momentum * mean;
  Expr runningVariance =
      (1 - momentum) * mean.at(getRunningVariance()) + momentum * unbiased(*channels) * variance;
  return {narrowed(y, getOperand()), runningMean, runningVariance, mean, inverse};
}

/// By the running statistics, which stay as they are.
SmallVector<Value> BatchNormOp::buildInference(OpBuilder &builder) {
  Groups channels(builder, getLoc(), getOperand(), otherDims(tensorType(getOperand()).getRank(), 1),
                  /*affineDims=*/{1}, /*count=*/1);
  Expr mean = channels.x.at(getRunningMean());
  Expr inverse = rsqrt(mean.at(getRunningVariance()) + getEps().convertToDouble());
  Expr centred = channels.x - channels.spread(mean);
  Expr y = channels.affine(centred * channels.spread(inverse), getWeight(), getBias());
  return {narrowed(y, getOperand()), getRunningMean(), getRunningVariance(), getRunningMean(), inverse};
}

SmallVector<Value> BatchNormOp::getResiduals() {
  return withWeight({getOperand(), getMean(), getInverseDeviation()}, getWeight());
}

/// The running statistics are sums of the old ones and the batch's, and pass their cotangents to both.
LogicalResult BatchNormOp::buildVJP(OpBuilder &builder, ValueRange cotangents,
                                    SmallVectorImpl<Value> &operandCotangents) {
  operandCotangents.append((*this)->getNumOperands(), Value());
  if (isZero(cotangents))
    return success();
  FailureOr<Groups> channels = channelsOf(builder, *this);
  if (failed(channels))
    return failure();
  double momentum = getMomentum().convertToDouble();
  Expr inverse = channels->x.at(getInverseDeviation());
  Expr unit = (channels->x - channels->spread(inverse.at(getMean()))) * channels->spread(inverse);
  Expr g = unitCotangent(*channels, cotangents[0], unit, getWeight(), getBias(), 3, operandCotangents);
  StatisticCotangents statistics{optional(inverse, cotangents[3]), optional(inverse, cotangents[4]), {}};
  if (Expr running = optional(inverse, cotangents[1]); running.value()) {
    operandCotangents[1] = (1 - momentum) * running;
    statistics.mean = plus(statistics.mean, momentum * running);
  }
  if (Expr running = optional(inverse, cotangents[2]); running.value()) {
    operandCotangents[2] = (1 - momentum) * running;
    statistics.variance = momentum * unbiased(*channels) * running;
  }
  operandCotangents[0] =
      groupCotangent(*channels, g, unit, inverse, /*isCentred=*/true, statistics, getOperand());
  return success();
}

} // namespace gpuc::ir
