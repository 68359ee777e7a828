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
  Expr weight(builder, getLoc(), getWeight()), gradient = weight.at(getGradient());
  UpdateNumber beta1 = updateNumber(*this, weight, "beta1", getBeta1());
  UpdateNumber beta2 = updateNumber(*this, weight, "beta2", getBeta2());
  UpdateNumber decay = updateNumber(*this, weight, "weight_decay", getWeightDecay());
  Expr step = asF64(weight.at(getStep())), lr = asF64(weight.at(getLr()));
  auto correction = [&](const UpdateNumber &beta) { return 1 - pow(beta.beside(step), step); };

  if (getDecoupled())
    weight = decayed(weight, lr, decay);
  else
    gradient = withDecay(gradient, weight, decay);
  Expr average = withoutDenormals(runningMean(beta1, weight.at(getExpAvg()), gradient));
  Expr averageSquare = withoutDenormals(runningMean(beta2, weight.at(getExpAvgSq()), gradient * gradient));
  Expr square = getMaxExpAvgSq() ? max(weight.at(getMaxExpAvgSq()), averageSquare) : averageSquare; // AMSGrad
  // The root of the second correction divides root and eps alike and so becomes a factor of both step and
  // eps, two scalars (Kingma and Ba 2015, end of section 2): an element takes one division instead of two.
  Expr root = sqrt(correction(beta2));
  Expr denominator = sqrt(square) + spreadLike(weight, getEps().convertToDouble() * root);
  Expr stepSize = spreadLike(weight, lr * root / correction(beta1));
  SmallVector<Value> updated = {weight - stepSize * (average / denominator), average, averageSquare};
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
  Expr weight(builder, getLoc(), getWeight());
  UpdateNumber beta1 = updateNumber(*this, weight, "beta1", getBeta1());
  UpdateNumber beta2 = updateNumber(*this, weight, "beta2", getBeta2());
  UpdateNumber decay = updateNumber(*this, weight, "weight_decay", getWeightDecay());
  Expr gradient = withDecay(weight.at(getGradient()), weight, decay);
  Expr step = asF64(weight.at(getStep())), lr = asF64(weight.at(getLr()));
  Expr average = withoutDenormals(runningMean(beta1, weight.at(getExpAvg()), gradient));
  Expr size = gradient.make<AbsOp>(gradient.value()) + getEps().convertToDouble();
  Expr norm = withoutDenormals(max(beta2 * weight.at(getExpInf()), size));
  Expr stepSize = spreadLike(weight, lr / (1 - pow(beta1.beside(step), step)));
  return {weight - stepSize * (average / norm), average, norm};
}

SmallVector<Value> NadamUpdateOp::decompose(OpBuilder &builder) {
  Expr weight(builder, getLoc(), getWeight()), gradient = weight.at(getGradient());
  UpdateNumber beta1 = updateNumber(*this, weight, "beta1", getBeta1());
  UpdateNumber beta2 = updateNumber(*this, weight, "beta2", getBeta2());
  UpdateNumber decay = updateNumber(*this, weight, "weight_decay", getWeightDecay());
  Expr step = asF64(weight.at(getStep())), lr = asF64(weight.at(getLr()));
  double forgets = std::pow(0.96, getMomentumDecay().convertToDouble()); // 0.96^(t · d) is (0.96^d)^t.
  auto mu = [&](Expr t) { return beta1.beside(step) * (1 - 0.5 * pow(t.constant(forgets), t)); };
  Expr now = mu(step), next = mu(step + 1), product = asF64(weight.at(getMuProduct())) * now;

  if (getDecoupled())
    weight = decayed(weight, lr, decay);
  else
    gradient = withDecay(gradient, weight, decay);
  Expr average = withoutDenormals(runningMean(beta1, weight.at(getExpAvg()), gradient));
  Expr square = withoutDenormals(runningMean(beta2, weight.at(getExpAvgSq()), gradient * gradient));
  // As in AdamUpdateOp the root of the correction goes to scalars.
  Expr root = sqrt(1 - pow(beta2.beside(step), step));
  Expr denominator = sqrt(square) + spreadLike(weight, getEps().convertToDouble() * root);
  Expr ofGradient = spreadLike(weight, lr * root * (1 - now) / (1 - product));
  Expr ofAverage = spreadLike(weight, lr * root * next / (1 - product * next));
  Expr direction = (ofGradient * gradient + ofAverage * average) / denominator;
  return {weight - direction, average, square, cast(product, getElementTypeOrSelf(getMuProduct().getType()))};
}

SmallVector<Value> RadamUpdateOp::decompose(OpBuilder &builder) {
  Expr weight(builder, getLoc(), getWeight()), gradient = weight.at(getGradient());
  UpdateNumber beta1 = updateNumber(*this, weight, "beta1", getBeta1());
  UpdateNumber beta2 = updateNumber(*this, weight, "beta2", getBeta2());
  UpdateNumber decay = updateNumber(*this, weight, "weight_decay", getWeightDecay());
  Expr step = asF64(weight.at(getStep())), lr = asF64(weight.at(getLr()));
  if (getDecoupled())
    weight = decayed(weight, lr, decay);
  else
    gradient = withDecay(gradient, weight, decay);
  Expr average = withoutDenormals(runningMean(beta1, weight.at(getExpAvg()), gradient));
  Expr square = withoutDenormals(runningMean(beta2, weight.at(getExpAvgSq()), gradient * gradient));

  Expr power = pow(beta2.beside(step), step);
  Expr longest = 2 / (1 - beta2.beside(step)) - 1;
  Expr length = longest - 2 * step * power / (1 - power);
  Expr variance = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length);
  Expr isSure = length > 5;
  Expr rectified = spreadLike(weight, sqrt(select(isSure, variance * (1 - power), 0)));
  Expr scale = select(broadcastScalar(isSure, weight.shape()),
                      rectified / (sqrt(square) + getEps().convertToDouble()), 1);
  Expr stepSize = spreadLike(weight, lr / (1 - pow(beta1.beside(step), step)));
  return {weight - stepSize * average * scale, average, square};
}

SmallVector<Value> LionUpdateOp::decompose(OpBuilder &builder) {
  Expr weight(builder, getLoc(), getWeight()), gradient = weight.at(getGradient());
  Expr average = weight.at(getExpAvg()), lr = asF64(weight.at(getLr()));
  Expr direction = sign(runningMean(getBeta1().convertToDouble(), average, gradient));
  return {decayed(weight, lr, getWeightDecay()) - spreadLike(weight, lr) * direction,
          withoutDenormals(runningMean(getBeta2().convertToDouble(), average, gradient))};
}

} // namespace gpuc::ir
