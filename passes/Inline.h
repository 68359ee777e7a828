//===- Inline.h - Function bodies where they are called ----------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace gpuc {

/// Clones the body of `callee`, a function of one block, to where `builder` stands, with `arguments` for its
/// own, and returns what it returns. Locations and attributes (the ids of random ops among them) are kept.
llvm::SmallVector<mlir::Value> cloneBody(mlir::OpBuilder &builder, mlir::func::FuncOp callee,
                                         mlir::ValueRange arguments);

/// Puts the body of each function that `function` calls in place of the call, until no call is left. Fails,
/// with a message at the call, if the callee is not defined here or if calls form a circle.
llvm::LogicalResult inlineCalls(mlir::func::FuncOp function);

} // namespace gpuc
