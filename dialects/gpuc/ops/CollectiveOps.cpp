//===- CollectiveOps.cpp - What ranks say to one another ---------------------===//

#include "dialects/gpuc/GpucOps.h"

using namespace mlir;

namespace gpuc::ir {

RankedTensorType shareOf(RankedTensorType whole, int64_t ranks) {
  const int64_t each = (whole.getNumElements() + ranks - 1) / ranks;
  return RankedTensorType::get({each}, whole.getElementType());
}

/// `share` is what one of so many ranks has of `whole`.
static LogicalResult checkShare(Operation *op, Type share, Type whole, int64_t ranks) {
  StringRef name = op->getName().stripDialect();
  if (ranks < 1)
    return op->emitOpError() << "world_size must be at least 1, but is " << ranks << " [" << name << "_C1]";
  auto type = cast<RankedTensorType>(whole);
  if (type.hasStaticShape() && share == shareOf(type, ranks))
    return success();
  InFlightDiagnostic error = op->emitOpError() << "of " << ranks << " ranks each has of " << whole << ' ';
  return (type.hasStaticShape() ? error << shareOf(type, ranks) << ", not " << share
                                : error << "no known number of elements")
         << " [" << name << "_C2]";
}

void ReduceScatterOp::build(OpBuilder &builder, OperationState &state, Value part, int64_t worldSize) {
  build(builder, state, shareOf(cast<RankedTensorType>(part.getType()), worldSize), part, worldSize);
}

LogicalResult ReduceScatterOp::verify() {
  return checkShare(*this, getType(), getOperand().getType(), getWorldSize());
}

LogicalResult AllGatherOp::verify() {
  return checkShare(*this, getOperand().getType(), getType(), getWorldSize());
}

/// Of `wholes` each rank owns one, of the type of `own`.
static LogicalResult checkOwners(Operation *op, Type own, ValueRange wholes, int64_t ranks) {
  StringRef name = op->getName().stripDialect();
  if (wholes.empty() || static_cast<int64_t>(wholes.size()) > ranks)
    return op->emitOpError() << ranks << " ranks own " << wholes.size() << " tensors, expected 1 to " << ranks
                             << " [" << name << "_C1]";
  for (Type whole : wholes.getTypes())
    if (whole != own)
      return op->emitOpError() << "a rank owns " << own << ", and another one " << whole << " [" << name
                               << "_C2]";
  return success();
}

LogicalResult ReduceToOwnersOp::verify() {
  return checkOwners(*this, getOwn().getType(), getWholes(), getWorldSize());
}

LogicalResult GatherFromOwnersOp::verify() {
  return checkOwners(*this, getOwn().getType(), getWholes(), getWorldSize());
}

} // namespace gpuc::ir
