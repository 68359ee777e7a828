//===- ElementwiseOps.cpp - Types and verifiers of elementwise ops ----------===//

#include "dialects/gpuc/NumberText.h"
#include "dialects/gpuc/TypeChecks.h"

using namespace mlir;

namespace gpuc::ir {

static RankedTensorType boolTensorLike(Value value) {
  return RankedTensorType::get(shapeOf(value), IntegerType::get(value.getContext(), 1));
}

FailureOr<Types> CompareOp::inferTypes(std::optional<Location>, Adaptor adaptor) {
  return Types{boolTensorLike(adaptor.getLhs())};
}

FailureOr<Types> IsFiniteOp::inferTypes(std::optional<Location>, Adaptor adaptor) {
  return Types{boolTensorLike(adaptor.getOperand())};
}

LogicalResult LeakyReluOp::verify() {
  if (getSlope().isFinite())
    return success();
  return emitOpError() << "slope must be finite, but is " << numberText(getSlope().convertToDouble())
                       << " [leaky_relu_C1]";
}

LogicalResult ClampOp::verify() {
  if (getLow().convertToDouble() <= getHigh().convertToDouble())
    return success();
  return emitOpError() << "low must not exceed high, but low is " << numberText(getLow().convertToDouble())
                       << " and high " << numberText(getHigh().convertToDouble()) << " [clamp_C1]";
}

LogicalResult IotaOp::verify() {
  int64_t rank = getType().getRank();
  if (getDim() >= 0 && getDim() < static_cast<uint64_t>(rank))
    return success();
  return emitOpError() << "dim " << static_cast<int64_t>(getDim()) << " is not a dimension of the result "
                       << getType() << " [iota_C1]";
}

int64_t FmaOp::getFlops() { return 2 * elementCount(getType()); }

} // namespace gpuc::ir
