//===- TypeChecks.cpp - What the verifiers of several ops share -------------===//

#include "dialects/gpuc/TypeChecks.h"

#include "dialects/gpuc/NumberText.h"

using namespace mlir;

namespace gpuc::ir {

std::string extentText(int64_t extent) {
  return ShapedType::isDynamic(extent) ? "?" : std::to_string(extent);
}

/// What the operands are compared with.
static Type referenceType(Operation *op) {
  return op->getNumResults() ? op->getResult(0).getType() : op->getOperand(0).getType();
}

LogicalResult verifyInferredTypes(Operation *op, TypeRange inferred) {
  if (inferred == op->getResultTypes())
    return success();
  return op->emitOpError() << "must return (" << inferred << "), but returns (" << op->getResultTypes()
                           << ") [inferred_C1]";
}

LogicalResult verifySameTensorTypes(Operation *op) {
  Type expected = referenceType(op);
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get().getType() != expected)
      return op->emitOpError() << "operand #" << operand.getOperandNumber() << " is "
                               << operand.get().getType() << ", but the result is " << expected
                               << " [same_type_C1]";
  return success();
}

LogicalResult verifySameTensorShapes(Operation *op) {
  auto expected = dyn_cast<RankedTensorType>(referenceType(op));
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (type && expected && type.getShape() != expected.getShape())
      return op->emitOpError() << "operand #" << operand.getOperandNumber() << " is " << type
                               << ", but the result is " << expected
                               << ": their shapes differ [same_shape_C1]";
  }
  return success();
}

LogicalResult checkDim(std::optional<Location> location, StringRef op, StringRef label, int64_t dim,
                       Type operand) {
  int64_t rank = cast<RankedTensorType>(operand).getRank();
  if (dim >= 0 && dim < rank)
    return success();
  return emitOptionalError(location, "'", op, "' op dim ", dim, " is not a dimension of the operand ",
                           operand, ", which has ", rank, " [", label, "]");
}

LogicalResult checkDims(std::optional<Location> location, StringRef op, StringRef label,
                        ArrayRef<int64_t> dims, Type type) {
  int64_t rank = cast<RankedTensorType>(type).getRank();
  int64_t previous = -1;
  for (int64_t dim : dims) {
    if (dim <= previous || dim >= rank)
      return emitOptionalError(location, "'", op, "' op dims must increase and be dimensions of ", type,
                               ", but ", dim, previous < 0 ? " stands first" : " follows ",
                               previous < 0 ? std::string() : std::to_string(previous), " [", label, "]");
    previous = dim;
  }
  return success();
}

LogicalResult checkScalar(Operation *op, StringRef label, StringRef name, Value value) {
  if (tensorType(value).getRank() == 0)
    return success();
  return op->emitOpError() << name << " must be a scalar tensor, but is " << value.getType() << " [" << label
                           << "]";
}

LogicalResult checkType(Operation *op, StringRef label, StringRef name, Type found, Type expected) {
  if (found == expected)
    return success();
  return op->emitOpError() << name << " must be " << expected << ", but is " << found << " [" << label << "]";
}

LogicalResult checkFraction(Operation *op, StringRef label, StringRef name, const APFloat &number) {
  double value = number.convertToDouble();
  if (value >= 0 && value <= 1)
    return success();
  return op->emitOpError() << name << " must lie in [0, 1], but is " << numberText(value) << " [" << label
                           << "]";
}

LogicalResult checkNotNegative(Operation *op, StringRef label, StringRef name, const APFloat &number) {
  if (number.convertToDouble() >= 0)
    return success();
  return op->emitOpError() << name << " must not be negative, but is " << numberText(number.convertToDouble())
                           << " [" << label << "]";
}

FailureOr<int64_t> reducedCount(Operation *op, Value operand, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (ShapedType::isDynamic(shapeOf(operand)[dim]))
      return op->emitOpError() << "operand " << operand.getType()
                               << " has the batch among what is reduced: run gpuc-specialize-batch first";
    count *= shapeOf(operand)[dim];
  }
  return count;
}

FailureOr<RankedTensorType> inferGatherType(std::optional<Location> location, StringRef op, Value operand,
                                            Value indices, int64_t dim) {
  if (failed(checkDim(location, op, labelOf(op, 1), dim, operand.getType())))
    return failure();
  ArrayRef<int64_t> shape = shapeOf(operand);
  Shape result(shape.take_front(dim));
  llvm::append_range(result, shapeOf(indices));
  llvm::append_range(result, shape.drop_front(dim + 1));
  RankedTensorType type = withShape(operand, result);
  if (ShapedType::isDynamic(shape[dim]) || !hasStaticOrBatchShape(type))
    return emitOptionalError(
        location, "'", op, "' op the batch must stay the leading dimension and cannot be indexed: operand ",
        operand.getType(), ", indices ", indices.getType(), ", dim ", dim, " [", labelOf(op, 2), "]");
  return type;
}

} // namespace gpuc::ir
