//===- TextRows.h - Tables of texts, on their way to the report ---------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace gpuc {

/// The rows of the module's attribute `name`, an array of arrays of strings, as objects with these fields.
/// Empty without the attribute; rows of another length, as only a hand-written module has, are left out.
llvm::json::Array objectsOf(mlir::ModuleOp module, llvm::StringRef name,
                            llvm::ArrayRef<llvm::StringLiteral> fields);

} // namespace gpuc
