//===- UpdateDecompositions.cpp - Optimizers, as PyTorch computes them ------===//

#include "dialects/gpuc/Expr.h"

using namespace mlir;

namespace gpuc::ir {

/// A scalar in each element of a tensor like `tensor`.
static Expr spreadLike(Expr tensor, Expr scalar) {
  return broadcastScalar(cast(scalar, tensor.elementType()), tensor.shape());
}

SmallVector<Value> SgdUpdateOp::decompose(OpBuilder &builder) {
  Expr weight(builder, getLoc(), getWeight()), gradient = weight.at(getGradient());
  double momentum = getMomentum().convertToDouble(), decay = getWeightDecay().convertToDouble();
  if (decay != 0)
    gradient = gradient + decay * weight;
  Expr lr = spreadLike(weight, weight.at(getLr()));
  if (!getMomentumBuffer())
    return {weight - lr * gradient};
  Expr isFirst = weight.at(getStep()) == 1;
  Expr running =
      momentum * weight.at(getMomentumBuffer()) + (1 - getDampening().convertToDouble()) * gradient;
  Expr buffer = select(broadcastScalar(isFirst, weight.shape()), gradient, running);
  Expr direction = getNesterov() ? gradient + momentum * buffer : buffer;
  return {weight - lr * direction, buffer};
}

/// What depends on the step alone is computed in f64, as PyTorch does, and rounded once.
SmallVector<Value> AdamUpdateOp::decompose(OpBuilder &builder) {
  Expr weight(builder, getLoc(), getWeight()), gradient = weight.at(getGradient());
  double beta1 = getBeta1().convertToDouble(), beta2 = getBeta2().convertToDouble();
  double decay = getWeightDecay().convertToDouble();
  Expr step = cast(weight.at(getStep()), builder.getF64Type()),
       lr = cast(weight.at(getLr()), builder.getF64Type());
  auto correction = [&](double beta) { return 1 - pow(step.constant(beta), step); };

  if (decay != 0 && getDecoupled())
    weight = weight * spreadLike(weight, 1 - lr * decay);
  else if (decay != 0)
    gradient = gradient + decay * weight;
  Expr average = beta1 * weight.at(getExpAvg()) + (1 - beta1) * gradient;
  Expr averageSquare = beta2 * weight.at(getExpAvgSq()) + (1 - beta2) * (gradient * gradient);
  Expr denominator =
      sqrt(averageSquare) / spreadLike(weight, sqrt(correction(beta2))) + getEps().convertToDouble();
  Expr stepSize = spreadLike(weight, lr / correction(beta1));
  return {weight - stepSize * (average / denominator), average, averageSquare};
}

} // namespace gpuc::ir
