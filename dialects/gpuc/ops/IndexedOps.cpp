//===- IndexedOps.cpp - Types of ops whose addresses are data ---------------===//

#include "dialects/gpuc/TypeChecks.h"

using namespace mlir;

namespace gpuc::ir {

FailureOr<Types> GatherOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  return oneType(inferGatherType(location, GatherOp::getOperationName(), adaptor.getOperand(),
                                 adaptor.getIndices(), adaptor.getDim()));
}

LogicalResult ScatterAddOp::verify() {
  auto expected =
      inferGatherType(getLoc(), ScatterAddOp::getOperationName(), getInit(), getIndices(), getDim());
  if (failed(expected))
    return failure();
  return checkType(*this, "scatter_add_C3", "updates", getUpdates().getType(), *expected);
}

/// `start` has an index for each dimension of the operand.
static LogicalResult checkStart(std::optional<Location> location, StringRef op, StringRef label,
                                Value operand, Value start) {
  if (shapeOf(start) == ArrayRef<int64_t>(tensorType(operand).getRank()))
    return success();
  return emitOptionalError(location, "'", op, "' op start ", start.getType(),
                           " must hold one index for each dimension of the operand ", operand.getType(), " [",
                           label, "]");
}

FailureOr<Types> DynamicSliceOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  Value operand = adaptor.getOperand();
  if (failed(checkStart(location, DynamicSliceOp::getOperationName(), "dynamic_slice_C1", operand,
                        adaptor.getStart())))
    return failure();
  ArrayRef<int64_t> sizes = adaptor.getSizes(), shape = shapeOf(operand);
  if (sizes.size() != shape.size())
    return emitTypeError<DynamicSliceOp>(location, "sizes has ", sizes.size(),
                                         " entries, but the operand is ", operand.getType(),
                                         " [dynamic_slice_C2]");
  Shape result;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    if (size < -1 || (size != -1 && (ShapedType::isDynamic(shape[dim]) || size > shape[dim])))
      return emitTypeError<DynamicSliceOp>(location, "size ", size, " in dimension ", dim,
                                           " does not fit in the operand ", operand.getType(),
                                           " [dynamic_slice_C3]");
    result.push_back(size == -1 ? shape[dim] : size);
  }
  return Types{withShape(operand, result)};
}

LogicalResult DynamicUpdateSliceOp::verify() {
  if (failed(checkStart(getLoc(), DynamicUpdateSliceOp::getOperationName(), "dynamic_update_slice_C1",
                        getOperand(), getStart())))
    return failure();
  auto operand = tensorType(getOperand()), update = tensorType(getUpdate());
  bool fits = operand.getElementType() == update.getElementType() && operand.getRank() == update.getRank();
  for (int64_t dim = 0; fits && dim < operand.getRank(); ++dim)
    fits = operand.isDynamicDim(dim) == update.isDynamicDim(dim) &&
           (operand.isDynamicDim(dim) || update.getDimSize(dim) <= operand.getDimSize(dim));
  if (fits)
    return success();
  return emitOpError() << "update " << update << " does not fit in the operand " << operand
                       << " [dynamic_update_slice_C2]";
}

int64_t ScatterAddOp::getFlops() { return elementCount(getUpdates().getType()); }

/// What is not chosen is not read.
int64_t GatherOp::getBytes() { return sizeInBytes(getIndices().getType()) + 2 * sizeInBytes(getType()); }
int64_t DynamicSliceOp::getBytes() { return sizeInBytes(getStart().getType()) + 2 * sizeInBytes(getType()); }
int64_t DynamicUpdateSliceOp::getBytes() {
  return sizeInBytes(getStart().getType()) + sizeInBytes(getUpdate().getType()) + 2 * sizeInBytes(getType());
}

} // namespace gpuc::ir
