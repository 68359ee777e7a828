//===- Inline.h - Function bodies where they are called ----------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

namespace gpuc {

/// The functions that a function names, to call them or take their gradient. Without the module's symbols
/// each name, most of them variables', is looked for among all that the module holds.
llvm::SetVector<mlir::func::FuncOp> functionsIn(mlir::func::FuncOp function,
                                                const mlir::SymbolTable *symbols = nullptr);

/// Clones the body of `callee`, a function of one block, to where `builder` stands, with `arguments` for its
/// own, and returns what it returns. Locations and attributes (the ids of random ops among them) are kept.
llvm::SmallVector<mlir::Value> cloneBody(mlir::OpBuilder &builder, mlir::func::FuncOp callee,
                                         mlir::ValueRange arguments);

/// A function may call another twice, which calls a third twice …: what it holds then doubles with each.
inline constexpr uint64_t kMostInlinedOps = 100'000;

/// Puts the body of each function that `function` calls in place of the call, until no call is left. Fails,
/// with a message at the call and nothing done, if the callee is not defined here, if calls form a circle, or
/// if more than kMostInlinedOps were to be put in their place.
llvm::LogicalResult inlineCalls(mlir::func::FuncOp function);

/// How many ops have been cloned for calls in this process, for tests: as many as there are in the end.
uint64_t inlinedOps();

} // namespace gpuc
