//===- UpdateOps.cpp - Verifiers of optimizer updates and fused kernels -----===//

#include "dialects/gpuc/TypeChecks.h"

using namespace mlir;

namespace gpuc::ir {

LogicalResult SgdUpdateOp::verify() {
  Type weight = getWeight().getType();
  bool hasMomentum = getMomentum().convertToDouble() != 0;
  if (failed(checkType(*this, "sgd_update_C1", "gradient", getGradient().getType(), weight)) ||
      (getMomentumBuffer() &&
       failed(checkType(*this, "sgd_update_C1", "buffer", getMomentumBuffer().getType(), weight))) ||
      failed(checkScalar(*this, "sgd_update_C2", "step", getStep())) ||
      failed(checkScalar(*this, "sgd_update_C2", "lr", getLr())))
    return failure();
  if (hasMomentum != !!getMomentumBuffer())
    return emitOpError() << "takes a buffer just when momentum is not 0, but momentum is "
                         << getMomentum().convertToDouble() << " [sgd_update_C3]";
  if (getNesterov() && (!hasMomentum || getDampening().convertToDouble() != 0))
    return emitOpError() << "nesterov needs momentum and no dampening, but momentum is "
                         << getMomentum().convertToDouble() << " and dampening "
                         << getDampening().convertToDouble() << " [sgd_update_C4]";
  if (!(getMomentum().convertToDouble() >= 0 && getWeightDecay().convertToDouble() >= 0) ||
      getDampening().isNaN())
    return emitOpError()
           << "momentum and weight_decay must not be negative and dampening a number, but they are "
           << getMomentum().convertToDouble() << ", " << getWeightDecay().convertToDouble() << " and "
           << getDampening().convertToDouble() << " [sgd_update_C6]";
  SmallVector<Type> expected(hasMomentum ? 2 : 1, weight);
  if (TypeRange(expected) == getUpdated().getTypes())
    return success();
  return emitOpError() << "must return (" << expected << "), but returns (" << getUpdated().getTypes()
                       << ") [sgd_update_C5]";
}

LogicalResult AdamUpdateOp::verify() {
  Type weight = getWeight().getType();
  std::pair<StringRef, Value> tensors[] = {
      {"gradient", getGradient()},          {"first moment", getExpAvg()},
      {"second moment", getExpAvgSq()},     {"new weight", getNewWeight()},
      {"new first moment", getNewExpAvg()}, {"new second moment", getNewExpAvgSq()}};
  for (auto [name, tensor] : tensors)
    if (failed(checkType(*this, "adam_update_C1", name, tensor.getType(), weight)))
      return failure();
  if (failed(checkScalar(*this, "adam_update_C2", "step", getStep())) ||
      failed(checkScalar(*this, "adam_update_C2", "lr", getLr())))
    return failure();
  auto isDecay = [](const APFloat &beta) {
    return beta.convertToDouble() >= 0 && beta.convertToDouble() < 1;
  };
  if (!isDecay(getBeta1()) || !isDecay(getBeta2()))
    return emitOpError() << "beta1 and beta2 must lie in [0, 1), but are " << getBeta1().convertToDouble()
                         << " and " << getBeta2().convertToDouble() << " [adam_update_C3]";
  double eps = getEps().convertToDouble(), decay = getWeightDecay().convertToDouble();
  if (eps >= 0 && decay >= 0)
    return success();
  return emitOpError() << "eps and weight_decay must not be negative, but are " << eps << " and " << decay
                       << " [adam_update_C4]";
}

/// Weight decay (2), momentum (3), nesterov (2) and the step itself (2), for each element.
int64_t SgdUpdateOp::getFlops() {
  int64_t perElement =
      2 + (getWeightDecay().isZero() ? 0 : 2) + (getMomentumBuffer() ? 3 : 0) + (getNesterov() ? 2 : 0);
  return perElement * elementCount(getWeight().getType());
}

/// Both moments (3 and 4), the denominator (3), the step (3) and weight decay (2), for each element.
int64_t AdamUpdateOp::getFlops() {
  return (13 + (getWeightDecay().isZero() ? 0 : 2)) * elementCount(getWeight().getType());
}

LogicalResult FusedOp::verify() {
  Block &block = getBody().front();
  if (TypeRange(block.getArgumentTypes()) != getInputs().getTypes())
    return emitOpError() << "region takes (" << block.getArgumentTypes() << "), but the inputs are ("
                         << getInputs().getTypes() << ") [fused_C1]";
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getValues().getTypes() != getOutputs().getTypes())
    return emitOpError() << "region must end in a gpuc.yield of (" << getOutputs().getTypes()
                         << ") [fused_C2]";
  return success();
}

} // namespace gpuc::ir
