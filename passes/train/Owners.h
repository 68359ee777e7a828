//===- Owners.h - Trained variables, each of which one rank owns ---------------===//
//
// An optimizer that computes with a matrix as a whole is of no use to a rank that has a share of it. So of
// equal matrices each rank owns one: it has the sum of that one's gradient, keeps what the optimizer keeps
// for it, updates it, and the others gather it from the rank that owns it. All ranks do that by the same
// commands, each with a matrix of its own: in a variable that is another one on each rank.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/recipe/ParameterGroups.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc {

/// Groups of numbers of `trained`, each of variables of one type that are updated alike, as a whole: as many
/// as there are ranks, or fewer, but at least two and half as many, since who owns none keeps room for one.
llvm::SmallVector<llvm::SmallVector<unsigned>> groupForOwners(llvm::ArrayRef<ir::VariableOp> trained,
                                                              const ParameterGroups &groups, int64_t ranks);

/// Declares what rank r has of `members`, the r-th. These stay, for who reads them by name, until
/// eraseOwned().
ir::VariableOp declareOwned(llvm::ArrayRef<ir::VariableOp> members, int64_t ranks);

/// The value with which @init begins what ranks own, made of those of its members, the r-th on rank r; null
/// if it has no such members. `values` are those of variables, by name.
mlir::Value initialOfOwners(mlir::OpBuilder &builder, ir::VariableOp owned,
                            const llvm::StringMap<mlir::Value> &values);

/// Who reads one of the members gathers all of them, once in each function.
void gatherOwned(mlir::ModuleOp module);

/// Names of variables that are in the module under that of what ranks own alone.
llvm::StringSet<> ownedNames(mlir::ModuleOp module);

void eraseOwned(mlir::ModuleOp module);

} // namespace gpuc
