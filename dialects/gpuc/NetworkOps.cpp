//===- NetworkOps.cpp - Verifiers and costs of softmax ----------------------===//

#include "dialects/gpuc/TypeChecks.h"

using namespace mlir;

namespace gpuc::ir {

LogicalResult SoftmaxOp::verify() {
  return checkDim(getLoc(), getOperationName(), "along_dim_C1", getDim(), getType());
}
LogicalResult LogSoftmaxOp::verify() {
  return checkDim(getLoc(), getOperationName(), "along_dim_C1", getDim(), getType());
}

/// Maximum, difference, exponential, sum and quotient (or logarithm and difference).
int64_t SoftmaxOp::getFlops() { return 5 * elementCount(getType()); }
int64_t LogSoftmaxOp::getFlops() { return 5 * elementCount(getType()); }

} // namespace gpuc::ir
