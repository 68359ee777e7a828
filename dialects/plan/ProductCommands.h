//===- ProductCommands.h - What products of matrices and of images share ----===//
//
// Internal to the dialect.
//
#pragma once

#include "dialects/plan/PlanOps.h"
#include "runtime/plan/cost.h"

namespace gpuc::plan {

/// TF32 is how f32 is multiplied.
inline mlir::LogicalResult verifyTf32(ProductOpInterface product) {
  if (product.getTf32() && !product.getElement().isF32())
    return product->emitOpError("rounds f32 to TF32, but its elements are ") << product.getElement();
  return mlir::success();
}

/// What a product does with the operands of its table. One without a result has an update, or should have.
inline llvm::ArrayRef<OperandUse> usesOf(MatmulOp matmul) {
  return !matmul.getResult()      ? llvm::ArrayRef(kUpdatingMatmulOperands)
         : matmul.getAccumulate() ? llvm::ArrayRef(kAccumulatingMatmulOperands)
                                  : llvm::ArrayRef(kMatmulOperands);
}

/// Operations on each element behind a product: an addition, a maximum, relu's gradient.
inline int64_t opsBehind(ProductOpInterface product) {
  return (product.getBias() ? 1 : 0) + product.getRelu() + (product.getMask() ? 2 : 0);
}

} // namespace gpuc::plan
