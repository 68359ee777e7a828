//===- DefinitionVjp.h - Derivatives by way of definitions ------------------===//
//
// Internal to the dialect.
//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc::ir {

/// A VJP for composites whose own derivative is rarely asked for, such as ops that are gradients themselves:
/// builds the definition again, which reads the operands alone, and its backward pass. The op's residuals are
/// its operands.
mlir::LogicalResult buildDefinitionVJP(CompositeOpInterface op, mlir::OpBuilder &builder,
                                       mlir::ValueRange cotangents,
                                       llvm::SmallVectorImpl<mlir::Value> &operandCotangents);

/// The same by way of another definition, which holds no loop: `define` builds it and returns the results.
mlir::LogicalResult
buildDefinitionVJP(mlir::Operation *op, mlir::OpBuilder &builder, mlir::ValueRange cotangents,
                   llvm::SmallVectorImpl<mlir::Value> &operandCotangents,
                   llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &)> define);

} // namespace gpuc::ir
