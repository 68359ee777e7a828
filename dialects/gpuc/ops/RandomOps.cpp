//===- RandomOps.cpp - Verifiers of ops that draw random numbers ------------===//

#include "dialects/gpuc/NumberText.h"
#include "dialects/gpuc/TypeChecks.h"

#include <cmath>

using namespace mlir;

namespace gpuc::ir {

/// Ids above belong to the further draws of one op: draw k of op `id` has the id `id + k * randomDrawStride`.
static LogicalResult checkId(Operation *op, int64_t id, int64_t bound) {
  if (id >= 0 && id < bound)
    return success();
  return op->emitOpError() << "id must lie in [0, " << bound << "), but is " << id << " [random_C2]";
}

static LogicalResult checkKey(Operation *op, Value seed, Value step) {
  if (failed(checkScalar(op, "random_C1", "seed", seed)))
    return failure();
  return checkScalar(op, "random_C1", "step", step);
}

LogicalResult RandomBitsOp::verify() {
  if (failed(checkKey(*this, getSeed(), getStep())) ||
      (getFrom() && failed(checkScalar(*this, "random_C1", "from", getFrom()))))
    return failure();
  return checkId(*this, getId(), randomDraws * randomDrawStride);
}

LogicalResult RandomUniformOp::verify() {
  if (failed(checkKey(*this, getSeed(), getStep())) || failed(checkId(*this, getId(), randomDrawStride)))
    return failure();
  double low = getLow().convertToDouble(), high = getHigh().convertToDouble();
  if (low < high && std::isfinite(high - low))
    return success();
  return emitOpError() << "low must be less than high by a finite number, but low is " << numberText(low)
                       << " and high " << numberText(high) << " [random_uniform_C1]";
}

LogicalResult RandomNormalOp::verify() {
  if (failed(checkKey(*this, getSeed(), getStep())) || failed(checkId(*this, getId(), randomDrawStride)))
    return failure();
  double mean = getMean().convertToDouble(), deviation = getDeviation().convertToDouble();
  if (deviation >= 0 && std::isfinite(deviation) && std::isfinite(mean))
    return success();
  return emitOpError() << "mean and deviation must be finite and deviation not negative, but are "
                       << numberText(mean) << " and " << numberText(deviation) << " [random_normal_C1]";
}

LogicalResult DropoutOp::verify() {
  if (failed(checkId(*this, getId(), randomDrawStride)))
    return failure();
  return checkFraction(*this, "dropout_C1", "p", getP());
}

} // namespace gpuc::ir
