//===- Entries.h - Functions that are entries of a plan ---------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace gpuc {

/// Whether the module's functions are the entries of a plan, as gpuc-expand-recipe leaves them, and a model
/// no more.
bool isExpanded(mlir::ModuleOp module);

/// Whether the session gives a variable its value before it runs @init: `seed`, and the counters `rank` and
/// `world_size`.
bool isSetBySession(llvm::StringRef variable, llvm::StringRef kind);

/// The name of an argument: its `gpuc.name`, else argN.
std::string argumentName(mlir::func::FuncOp function, unsigned index);

/// The attribute of an argument or a result in which its name stands.
inline constexpr llvm::StringLiteral kNameAttr = "gpuc.name";

/// Of an argument that is no input of the model: what it is for.
inline constexpr llvm::StringLiteral kRoleAttr = "gpuc.role";

/// The role of the argument that says how many rows of a batch hold a sample.
inline constexpr llvm::StringLiteral kRowsRole = "rows";

/// The argument with the role, or null.
mlir::BlockArgument argumentOfRole(mlir::func::FuncOp function, llvm::StringRef role);

} // namespace gpuc
