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

inline llvm::ArrayRef<OperandUse> usesOf(ConvOp conv) {
  return conv.getResult() ? llvm::ArrayRef(kConvOperands) : llvm::ArrayRef(kUpdatingConvOperands);
}

/// A product has a result, or an update that takes its place.
inline mlir::LogicalResult verifyUpdate(ProductOpInterface product, llvm::StringRef label) {
  const bool updates = product.getUpdateAttr() != nullptr;
  if ((product.getResult() != nullptr) == updates)
    return product->emitOpError(updates ? "has an update as well as a result"
                                        : "has neither a result nor an update")
           << label;
  if (!updates && !(product.getUpdateInputs().empty() && product.getUpdateOutputs().empty()))
    return product->emitOpError("has operands of an update, but none");
  return mlir::success();
}

/// Operations on each element behind a product: an addition, a maximum, relu's gradient.
inline int64_t opsBehind(ProductOpInterface product) {
  return (product.getBias() ? 1 : 0) + product.getRelu() + (product.getMask() ? 2 : 0);
}

} // namespace gpuc::plan
