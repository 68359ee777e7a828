//===- UpdateDecompositions.cpp - Optimizers, one element at a time ---------===//
//
// What depends on step and learning rate alone is computed in f64, as PyTorch does, and rounded once. Updates
// that look at a whole matrix stand in MatrixUpdates.cpp.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/definitions/UpdateHelpers.h"

#include <cmath>

using namespace mlir;

namespace gpuc::ir {

/// gradient + decay · weight
static Expr withDecay(Expr gradient, Expr weight, const UpdateNumber &decay) {
  return decay.isZero() ? gradient : gradient + decay * weight;
}

/// rate · old + (1 - rate) · now
static Expr runningMean(const UpdateNumber &rate, Expr old, Expr now) {
  return rate * old + rate.oneMinus() * now;
}
static Expr runningMean(double rate, Expr old, Expr now) { return rate * old + (1 - rate) * now; }

namespace {

/// What updates by running means of the gradient share. `op` has beta1, beta2 and a decay.
struct Moments {
  template <typename Update>
  Moments(OpBuilder &builder, Update op)
      : weight(builder, op.getLoc(), op.getWeight()), gradient(weight.at(op.getGradient())),
        beta1(updateNumber(op, weight, "beta1", op.getBeta1())),
        beta2(updateNumber(op, weight, "beta2", op.getBeta2())),
        decay(updateNumber(op, weight, "weight_decay", op.getWeightDecay())) {}

  void decayGradient() { gradient = withDecay(gradient, weight, decay); }
  void decayApart(Expr lr) { weight = decayed(weight, lr, decay); }

  Expr first(Value old) const { return withoutDenormals(runningMean(beta1, weight.at(old), gradient)); }
  Expr second(Value old) const {
    return withoutDenormals(runningMean(beta2, weight.at(old), gradient * gradient));
  }

  Expr weight, gradient;
  UpdateNumber beta1, beta2, decay;
};

/// Step and rate as f64, and what a running mean of so many steps falls short by.
struct Clock {
  template <typename Update>
  Clock(const Moments &moments, Update op)
      : step(asF64(moments.weight.at(op.getStep()))), lr(asF64(moments.weight.at(op.getLr()))) {}

  Expr power(const UpdateNumber &beta) const { return pow(beta.beside(step), step); }
  Expr correction(const UpdateNumber &beta) const { return 1 - power(beta); }

  Expr step, lr;
};

/// Decay as the op has it, by the weight or the gradient.
template <typename Update> void decay(Moments &moments, Update op, Expr lr) {
  op.getDecoupled() ? moments.decayApart(lr) : moments.decayGradient();
}

} // namespace

SmallVector<Value> SgdUpdateOp::decompose(OpBuilder &builder) {
  Expr weight(builder, getLoc(), getWeight());
  UpdateNumber decay = updateNumber(*this, weight, "weight_decay", getWeightDecay());
  Expr gradient = withDecay(weight.at(getGradient()), weight, decay);
  UpdateNumber momentum = updateNumber(*this, weight, "momentum", getMomentum());
  Expr lr = spreadLike(weight, weight.at(getLr()));
  if (!getMomentumBuffer())
    return {weight - lr * gradient};
  Expr isFirst = weight.at(getStep()) == 1;
  Expr running =
      momentum * weight.at(getMomentumBuffer()) + (1 - getDampening().convertToDouble()) * gradient;
  Expr buffer = withoutDenormals(select(broadcastScalar(isFirst, weight.shape()), gradient, running));
  Expr direction = getNesterov() ? gradient + momentum * buffer : buffer;
  return {weight - lr * direction, buffer};
}

SmallVector<Value> AdamUpdateOp::decompose(OpBuilder &builder) {
  Moments moments(builder, *this);
  Clock clock(moments, *this);
  decay(moments, *this, clock.lr);
  Expr average = moments.first(getExpAvg()), averageSquare = moments.second(getExpAvgSq());
  Expr square = averageSquare;
  if (getMaxExpAvgSq()) // AMSGrad
    square = max(moments.weight.at(getMaxExpAvgSq()), averageSquare);
  // The root of the second correction divides root and eps alike and so becomes a factor of both step and
  // eps, two scalars (Kingma and Ba 2015, end of section 2): an element takes one division instead of two.
  Expr root = sqrt(clock.correction(moments.beta2));
  Expr denominator = sqrt(square) + spreadLike(moments.weight, getEps().convertToDouble() * root);
  Expr stepSize = spreadLike(moments.weight, clock.lr * root / clock.correction(moments.beta1));
  SmallVector<Value> updated = {moments.weight - stepSize * (average / denominator), average, averageSquare};
  if (getMaxExpAvgSq())
    updated.push_back(square);
  return updated;
}

SmallVector<Value> RmspropUpdateOp::decompose(OpBuilder &builder) {
  Expr weight(builder, getLoc(), getWeight());
  UpdateNumber decay = updateNumber(*this, weight, "weight_decay", getWeightDecay());
  Expr gradient = withDecay(weight.at(getGradient()), weight, decay);
  double alpha = getAlpha().convertToDouble();
  Expr square = withoutDenormals(runningMean(alpha, weight.at(getSquareAvg()), gradient * gradient));
  Expr variance = square, mean;
  if (getGradAvg()) {
    mean = withoutDenormals(runningMean(alpha, weight.at(getGradAvg()), gradient));
    variance = max(square - mean * mean, square.constant(0));
  }
  Expr direction = gradient / (sqrt(variance) + getEps().convertToDouble());
  if (getMomentumBuffer())
    direction = withoutDenormals(
        updateNumber(*this, weight, "momentum", getMomentum()) * weight.at(getMomentumBuffer()) + direction);
  SmallVector<Value> updated = {weight - spreadLike(weight, weight.at(getLr())) * direction, square};
  if (getMomentumBuffer())
    updated.push_back(direction);
  if (getGradAvg())
    updated.push_back(mean);
  return updated;
}

SmallVector<Value> AdagradUpdateOp::decompose(OpBuilder &builder) {
  Expr weight(builder, getLoc(), getWeight());
  UpdateNumber decay = updateNumber(*this, weight, "weight_decay", getWeightDecay());
  Expr gradient = withDecay(weight.at(getGradient()), weight, decay);
  Expr step = asF64(weight.at(getStep())), lr = asF64(weight.at(getLr()));
  Expr stepSize = lr / (1 + (step - 1) * getLrDecay().convertToDouble());
  Expr total = weight.at(getSum()) + gradient * gradient;
  Expr direction = gradient / (sqrt(total) + getEps().convertToDouble());
  return {weight - spreadLike(weight, stepSize) * direction, total};
}

SmallVector<Value> AdadeltaUpdateOp::decompose(OpBuilder &builder) {
  Expr weight(builder, getLoc(), getWeight());
  UpdateNumber decay = updateNumber(*this, weight, "weight_decay", getWeightDecay());
  Expr gradient = withDecay(weight.at(getGradient()), weight, decay);
  double rho = getRho().convertToDouble(), eps = getEps().convertToDouble();
  Expr square = withoutDenormals(runningMean(rho, weight.at(getSquareAvg()), gradient * gradient));
  Expr delta = sqrt(weight.at(getAccDelta()) + eps) / sqrt(square + eps) * gradient;
  Expr deltas = withoutDenormals(runningMean(rho, weight.at(getAccDelta()), delta * delta));
  return {weight - spreadLike(weight, weight.at(getLr())) * delta, square, deltas};
}

SmallVector<Value> AdamaxUpdateOp::decompose(OpBuilder &builder) {
  Moments moments(builder, *this);
  moments.decayGradient();
  Clock clock(moments, *this);
  Expr average = moments.first(getExpAvg());
  Expr size = moments.gradient.make<AbsOp>(moments.gradient.value()) + getEps().convertToDouble();
  Expr norm = withoutDenormals(max(moments.beta2 * moments.weight.at(getExpInf()), size));
  Expr stepSize = spreadLike(moments.weight, clock.lr / clock.correction(moments.beta1));
  return {moments.weight - stepSize * (average / norm), average, norm};
}

SmallVector<Value> NadamUpdateOp::decompose(OpBuilder &builder) {
  Moments moments(builder, *this);
  Clock clock(moments, *this);
  double forgets = std::pow(0.96, getMomentumDecay().convertToDouble()); // 0.96^(t · d) is (0.96^d)^t.
  auto mu = [&](Expr t) {
    return moments.beta1.beside(clock.step) * (1 - 0.5 * pow(t.constant(forgets), t));
  };
  Expr now = mu(clock.step), next = mu(clock.step + 1);
  Expr product = asF64(moments.weight.at(getMuProduct())) * now;

  decay(moments, *this, clock.lr);
  Expr average = moments.first(getExpAvg()), square = moments.second(getExpAvgSq());
  // As in AdamUpdateOp the root of the correction goes to scalars.
  Expr root = sqrt(clock.correction(moments.beta2));
  Expr denominator = sqrt(square) + spreadLike(moments.weight, getEps().convertToDouble() * root);
  Expr ofGradient = spreadLike(moments.weight, clock.lr * root * (1 - now) / (1 - product));
  Expr ofAverage = spreadLike(moments.weight, clock.lr * root * next / (1 - product * next));
  Expr direction = (ofGradient * moments.gradient + ofAverage * average) / denominator;
  return {moments.weight - direction, average, square,
          cast(product, getElementTypeOrSelf(getMuProduct().getType()))};
}

SmallVector<Value> RadamUpdateOp::decompose(OpBuilder &builder) {
  Moments moments(builder, *this);
  Clock clock(moments, *this);
  decay(moments, *this, clock.lr);
  Expr average = moments.first(getExpAvg()), square = moments.second(getExpAvgSq());

  Expr power = clock.power(moments.beta2);
  Expr longest = 2 / (1 - moments.beta2.beside(clock.step)) - 1;
  Expr length = longest - 2 * clock.step * power / (1 - power);
  Expr variance = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length);
  Expr isSure = length > 5;
  Expr rectified = spreadLike(moments.weight, sqrt(select(isSure, variance * (1 - power), 0)));
  Expr scale = select(broadcastScalar(isSure, moments.weight.shape()),
                      rectified / (sqrt(square) + getEps().convertToDouble()), 1);
  Expr stepSize = spreadLike(moments.weight, clock.lr / clock.correction(moments.beta1));
  return {moments.weight - stepSize * average * scale, average, square};
}

SmallVector<Value> RpropUpdateOp::decompose(OpBuilder &builder) {
  Expr weight(builder, getLoc(), getWeight());
  UpdateNumber decay = updateNumber(*this, weight, "weight_decay", getWeightDecay());
  Expr gradient = withDecay(weight.at(getGradient()), weight, decay), one = weight.constant(1);
  Expr agreement = gradient * weight.at(getPrev());
  Expr isFirst = broadcastScalar(weight.at(getStep()) == 1, weight.shape());
  Expr factor = select(agreement > 0, getEtaPlus().convertToDouble(),
                       select(agreement < 0, getEtaMinus().convertToDouble(), one));
  Expr size = select(isFirst, spreadLike(weight, weight.at(getLr())), weight.at(getStepSize())) * factor;
  size = size.make<ClampOp>(size.value(), getStepSizeMin(), getStepSizeMax());
  Expr kept = select(agreement < 0, 0, gradient);
  Expr direction = select(kept > 0, 1, select(kept < 0, -1, weight.constant(0)));
  return {weight - direction * size, kept, size};
}

SmallVector<Value> AsgdUpdateOp::decompose(OpBuilder &builder) {
  Expr weight(builder, getLoc(), getWeight());
  UpdateNumber decay = updateNumber(*this, weight, "weight_decay", getWeightDecay());
  Expr gradient = withDecay(weight.at(getGradient()), weight, decay);
  Expr step = asF64(weight.at(getStep())), lr = asF64(weight.at(getLr()));
  double lambd = getLambd().convertToDouble();
  Expr eta = select(weight.at(getStep()) == 1, lr, asF64(weight.at(getEta()))),
       mu = asF64(weight.at(getMu()));
  Expr moved = weight * spreadLike(weight, 1 - lambd * eta) - spreadLike(weight, eta) * gradient;
  Expr ax = weight.at(getAx());
  Expr mean =
      select(broadcastScalar(mu == 1, weight.shape()), moved, ax + spreadLike(weight, mu) * (moved - ax));
  Expr next = lr / pow(1 + lambd * lr * step, step.constant(getAlpha().convertToDouble()));
  Expr share = 1 / max(step - getT0().convertToDouble(), step.constant(1));
  return {moved, mean, cast(next, getElementTypeOrSelf(getEta().getType())),
          cast(share, getElementTypeOrSelf(getMu().getType()))};
}

SmallVector<Value> LionUpdateOp::decompose(OpBuilder &builder) {
  Expr weight(builder, getLoc(), getWeight()), gradient = weight.at(getGradient());
  Expr average = weight.at(getExpAvg()), lr = asF64(weight.at(getLr()));
  Expr direction = sign(runningMean(getBeta1().convertToDouble(), average, gradient));
  return {decayed(weight, lr, getWeightDecay()) - spreadLike(weight, lr) * direction,
          withoutDenormals(runningMean(getBeta2().convertToDouble(), average, gradient))};
}

} // namespace gpuc::ir
