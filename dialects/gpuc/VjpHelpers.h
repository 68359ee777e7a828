//===- VjpHelpers.h - What derivatives that need code share -----------------===//
//
// Internal to the dialect.
//
#pragma once

#include "dialects/gpuc/Expr.h"

namespace gpuc::ir {

/// Defines OP::buildVJP for an op whose other results than the first have no derivative: the braces that
/// follow return the cotangents of the first operands (the others have none), made from the cotangent `ct` of
/// the first result, or fail. They do not run when there is no cotangent.
#define GPUC_VJP_BODY(OP)                                                                                    \
  static mlir::FailureOr<llvm::SmallVector<mlir::Value>> operandCotangentsOf(OP op, Expr ct);                \
  mlir::LogicalResult OP::buildVJP(mlir::OpBuilder &builder, mlir::ValueRange cotangents,                    \
                                   llvm::SmallVectorImpl<mlir::Value> &operandCotangents) {                  \
    if (cotangents[0]) {                                                                                     \
      auto built = operandCotangentsOf(*this, Expr(builder, getLoc(), cotangents[0]));                       \
      if (mlir::failed(built))                                                                               \
        return mlir::failure();                                                                              \
      llvm::append_range(operandCotangents, *built);                                                         \
    }                                                                                                        \
    operandCotangents.resize((*this)->getNumOperands());                                                     \
    return mlir::success();                                                                                  \
  }                                                                                                          \
  static mlir::FailureOr<llvm::SmallVector<mlir::Value>> operandCotangentsOf(OP op, Expr ct)

#define GPUC_RESIDUALS(OP, ...)                                                                              \
  llvm::SmallVector<mlir::Value> OP::getResiduals() { return {__VA_ARGS__}; }

using Cotangents = llvm::SmallVector<mlir::Value>;

} // namespace gpuc::ir
