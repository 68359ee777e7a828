//===- NetworkOps.cpp - Verifiers and costs of softmax ----------------------===//

#include "dialects/gpuc/TypeChecks.h"

using namespace mlir;

namespace gpuc::ir {

template <typename Op> static LogicalResult checkAlongDim(Op op) {
  if (failed(checkDim(op.getLoc(), op.getOperationName(), "along_dim_C1", op.getDim(), op.getType())))
    return failure();
  if (op.getType().getDimSize(op.getDim()) != 0)
    return success();
  return op.emitOpError() << "dim " << op.getDim() << " of the operand " << op.getType()
                          << " has no elements to share among [along_dim_C2]";
}

LogicalResult SoftmaxOp::verify() { return checkAlongDim(*this); }
LogicalResult LogSoftmaxOp::verify() { return checkAlongDim(*this); }

/// Maximum, difference, exponential, sum and quotient (or logarithm and difference).
int64_t SoftmaxOp::getFlops() { return 5 * elementCount(getType()); }
int64_t LogSoftmaxOp::getFlops() { return 5 * elementCount(getType()); }

} // namespace gpuc::ir
