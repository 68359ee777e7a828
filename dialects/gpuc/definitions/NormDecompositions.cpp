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
// A channel of batch_norm has one weight and one bias, so that c, the centred elements, are scaled once, by
// s = r · weight, and what flows back has no sums but those that are the cotangents of weight and bias
// anyway: of ct, the cotangent of the result,
//
//   y = s · c + bias,  dbias = Σ ct,  dweight = r · Σ ct · c,
//   dx = s · ct + a + c · b,  a = -s · dbias / n,  b = -s · r · dweight / n.
//
// Such a channel may have elements on other ranks: then each sum over it, and n, is one over ranks. It may
// have rows that are not counted: these are scaled as the others are, but a and b are no concern of theirs.
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

  /// Has the first `rows` rows count, null for all of them, of each rank if `isSynced`.
  void countRows(Value rows, bool isSynced) {
    if (!rows && !isSynced)
      return;
    this->isSynced = isSynced;
    const auto all = static_cast<double>(x.shape().front());
    Type scalar = RankedTensorType::get({}, x.elementType());
    Expr counted = x.constant(scalar, all);
    if (rows) {
      Expr given = x.at(rows);
      isCounted = x.make<IotaOp>(RankedTensorType::get({x.shape().front()}, given.elementType()), 0);
      isCounted = isCounted < broadcastScalar(given, isCounted.shape());
      counted = cast(max(min(given, all), 0), x.elementType());
    }
    number = overRanks(counted) * (count / all);
  }

  Expr overRanks(Expr part) const {
    return isSynced ? part.make<AllReduceOp>(part.type(), part.value()) : part;
  }
  /// Zero in rows that do not count.
  Expr counted(Expr e) const {
    return isCounted.value() ? select(broadcast(isCounted, {0}, e.shape()), e, 0.0) : e;
  }

  Expr mean(Expr e) const { return divide(overRanks(sum(e, dims))); }
  /// By how many elements there are in a group; what is of none is 0.
  Expr divide(Expr total) const {
    return number.value() ? total / broadcastScalar(max(number, 1), total.shape()) : total / count;
  }
  /// Each element's share, times a factor, in what flows back to a statistic.
  Expr share(Expr cotangent, double factor) const {
    return number.value() ? divide(overRanks(cotangent) * factor) : cotangent * (factor / count);
  }
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
  bool isSynced = false; // whether groups are those of all ranks
  Expr isCounted;        // of each row; null if all are
  Expr number;           // of elements in a group, where `count` is not; null where it is
};

/// What flows back to x̂, and its means over groups; null is zero.
struct UnitCotangent {
  Expr g, mean, unitMean; // unitMean: of g · x̂
};

} // namespace

/// The cotangent direct + a + along · b, in the type of `operand`; null if all three are.
static Value groupCotangent(const Groups &groups, Expr direct, Expr a, Expr along, Expr b, Value operand) {
  if (a.value())
    direct = plus(direct, groups.counted(groups.spread(a)));
  if (b.value())
    direct = plus(direct, groups.counted(along * groups.spread(b)));
  return direct.value() ? cast(direct, tensorType(operand).getElementType()).value() : Value();
}

/// That of x from those of x̂, of the mean and of r, which is `inverse`.
static Value rowCotangent(const Groups &rows, UnitCotangent cotangent, Expr unit, Expr inverse, Expr toMean,
                          Expr toInverse, Value operand) {
  Expr a, b, direct;
  if (cotangent.g.value())
    direct = rows.spread(inverse) * cotangent.g;
  if (cotangent.mean.value())
    a = -(inverse * cotangent.mean);
  if (cotangent.unitMean.value())
    b = -(inverse * cotangent.unitMean);
  if (toMean.value())
    a = plus(a, rows.divide(toMean));
  if (toInverse.value())
    b = plus(b, rows.share(toInverse * (inverse * inverse), -1));
  return groupCotangent(rows, direct, a, unit, b, operand);
}

static Value narrowed(Expr x, Value operand) { return cast(x, tensorType(operand).getElementType()); }

static bool isZero(ValueRange cotangents) {
  return llvm::none_of(cotangents, [](Value value) { return value != nullptr; });
}

/// The cotangents of weight and bias, operands number `weightAt` and `biasAt`, from that of the result (null:
/// zero); returns the cotangent of x̂.
static UnitCotangent unitCotangent(const Groups &groups, Value cotangent, Expr unit, Value weight, Value bias,
                                   unsigned weightAt, unsigned biasAt, bool isCentred,
                                   SmallVectorImpl<Value> &operandCotangents) {
  if (!cotangent)
    return {};
  Expr ct = widen(groups.x.at(cotangent));
  Expr g = weight ? ct * groups.spreadAffine(weight) : ct;
  if (weight)
    operandCotangents[weightAt] = groups.affineCotangent(weight, ct * unit);
  if (bias)
    operandCotangents[biasAt] = groups.affineCotangent(bias, ct);
  return {g, isCentred ? groups.mean(g) : Expr(), groups.mean(g * unit)};
}

/// These, and the operand if there is one.
static SmallVector<Value> with(SmallVector<Value> values, Value optional) {
  if (optional)
    values.push_back(optional);
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
  return with({getOperand(), getMean(), getInverseDeviation()}, getWeight());
}

LogicalResult LayerNormOp::buildVJP(OpBuilder &builder, ValueRange cotangents,
                                    SmallVectorImpl<Value> &operandCotangents) {
  operandCotangents.append((*this)->getNumOperands(), Value());
  if (isZero(cotangents))
    return success();
  Groups rows = rowsOf(builder, *this);
  Expr inverse = rows.x.at(getInverseDeviation());
  Expr unit = (rows.x - rows.spread(rows.x.at(getMean()))) * rows.spread(inverse);
  UnitCotangent g = unitCotangent(rows, cotangents[0], unit, getWeight(), getBias(), 1,
                                  operandCotangents.size() - 1, /*isCentred=*/true, operandCotangents);
  operandCotangents[0] = rowCotangent(rows, g, unit, inverse, optional(rows.x, cotangents[1]),
                                      optional(rows.x, cotangents[2]), getOperand());
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

SmallVector<Value> RmsNormOp::getResiduals() { return with({getOperand(), getInverseRms()}, getWeight()); }

LogicalResult RmsNormOp::buildVJP(OpBuilder &builder, ValueRange cotangents,
                                  SmallVectorImpl<Value> &operandCotangents) {
  operandCotangents.append((*this)->getNumOperands(), Value());
  if (isZero(cotangents))
    return success();
  Groups rows = rowsOf(builder, *this);
  Expr inverse = rows.x.at(getInverseRms());
  Expr unit = rows.x * rows.spread(inverse);
  UnitCotangent g = unitCotangent(rows, cotangents[0], unit, getWeight(), /*bias=*/{}, 1, /*biasAt=*/0,
                                  /*isCentred=*/false, operandCotangents);
  operandCotangents[0] =
      rowCotangent(rows, g, unit, inverse, /*toMean=*/{}, optional(rows.x, cotangents[1]), getOperand());
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
  Groups channels(builder, op.getLoc(), op.getOperand(), dims, /*affineDims=*/{1}, *count);
  channels.countRows(op.getRows(), op.getSync());
  return channels;
}

/// From the variance over n elements, times a factor, to the unbiased one, n / (n - 1); of one element there
/// is none.
static Expr unbiased(const Groups &channels, double factor, Expr variance) {
  if (Expr n = channels.number; n.value())
    return factor * variance * broadcastScalar(max(n, 1) / max(n - 1, 1), variance.shape());
  return factor * (channels.count > 1 ? channels.count / (channels.count - 1) : 1) * variance;
}

/// What a channel's centred elements are multiplied by.
static Expr scaleOf(Expr inverse, Value weight) {
  return weight ? inverse * widen(inverse.at(weight)) : inverse;
}

static Expr scaled(const Groups &channels, Expr centred, Expr inverse, Value weight, Value bias) {
  Expr y = centred * channels.spread(scaleOf(inverse, weight));
  return bias ? y + channels.spreadAffine(bias) : y;
}

/// What becomes of running statistics by those of a batch; where nothing counts they stay as they are.
static Expr updated(const Groups &channels, Expr running, Expr update, double momentum) {
  Expr next = (1 - momentum) * running + update;
  if (!channels.isCounted.value())
    return next;
  return select(broadcastScalar(channels.number > 0, next.shape()), next, running);
}

SmallVector<Value> BatchNormOp::decompose(OpBuilder &builder) {
  FailureOr<Groups> channels = channelsOf(builder, *this);
  if (failed(channels))
    return {};
  double momentum = getMomentum().convertToDouble();
  Expr mean = channels->mean(channels->counted(channels->x));
  Expr centred = channels->x - channels->spread(mean);
  Expr variance = channels->mean(channels->counted(centred * centred));
  Expr inverse = rsqrt(variance + getEps().convertToDouble());
  Expr y = scaled(*channels, centred, inverse, getWeight(), getBias());
  Expr runningMean = updated(*channels, mean.at(getRunningMean()), momentum * mean, momentum);
  Expr runningVariance =
      updated(*channels, mean.at(getRunningVariance()), unbiased(*channels, momentum, variance), momentum);
  return {narrowed(y, getOperand()), runningMean, runningVariance, mean, inverse};
}

/// By the running statistics, which stay as they are.
SmallVector<Value> BatchNormOp::buildInference(OpBuilder &builder) {
  Groups channels(builder, getLoc(), getOperand(), otherDims(tensorType(getOperand()).getRank(), 1),
                  /*affineDims=*/{1}, /*count=*/1);
  Expr mean = channels.x.at(getRunningMean());
  Expr inverse = rsqrt(mean.at(getRunningVariance()) + getEps().convertToDouble());
  Expr centred = channels.x - channels.spread(mean);
  Expr y = scaled(channels, centred, inverse, getWeight(), getBias());
  return {narrowed(y, getOperand()), getRunningMean(), getRunningVariance(), getRunningMean(), inverse};
}

SmallVector<Value> BatchNormOp::getResiduals() {
  return with(with({getOperand(), getMean(), getInverseDeviation()}, getWeight()), getRows());
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
  Expr inverse = channels->x.at(getInverseDeviation()), a, b, direct;
  Expr centred = channels->x - channels->spread(inverse.at(getMean()));
  if (cotangents[0]) {
    Expr ct = widen(inverse.at(cotangents[0])), scale = scaleOf(inverse, getWeight());
    Expr toBias = sum(ct, channels->dims), toWeight = inverse * sum(ct * centred, channels->dims);
    if (getWeight())
      operandCotangents[3] = narrowed(toWeight, getWeight());
    if (getBias())
      operandCotangents[getWeight() ? 4 : 3] = narrowed(toBias, getBias());
    direct = channels->spread(scale) * ct;
    a = -(scale * channels->divide(channels->overRanks(toBias)));
    b = -(scale * inverse * channels->divide(channels->overRanks(toWeight)));
  }
  Expr toMean = optional(inverse, cotangents[3]);
  if (Expr running = optional(inverse, cotangents[1]); running.value()) {
    operandCotangents[1] = (1 - momentum) * running;
    toMean = plus(toMean, momentum * running);
  }
  if (Expr running = optional(inverse, cotangents[2]); running.value()) {
    operandCotangents[2] = (1 - momentum) * running;
    b = plus(b, channels->share(unbiased(*channels, momentum, running), 2));
  }
  if (Expr toInverse = optional(inverse, cotangents[4]); toInverse.value())
    b = plus(b, channels->share(toInverse * (inverse * inverse * inverse), -1));
  if (toMean.value())
    a = plus(a, channels->divide(channels->overRanks(toMean)));
  operandCotangents[0] = groupCotangent(*channels, direct, a, centred, b, getOperand());
  return success();
}

} // namespace gpuc::ir
