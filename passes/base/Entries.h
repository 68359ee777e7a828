//===- Entries.h - Functions that are entries of a plan ---------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace gpuc {

/// Whether the module's functions are the entries of a plan, as gpuc-expand-recipe leaves them, and a model
/// no more.
bool isExpanded(mlir::ModuleOp module);

/// The name of an argument: its `gpuc.name`, else argN.
std::string argumentName(mlir::func::FuncOp function, unsigned index);

/// The attribute of an argument or a result in which its name stands.
inline constexpr llvm::StringLiteral kNameAttr = "gpuc.name";

} // namespace gpuc
