//===- SymbolChecks.h - Looking symbols up, with a cure if they are missing -===//
//
// Internal to the dialect.
//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc::ir {

/// Adds ", did you mean 'x'?" with the nearest name that `Op`s of the module have, if one is near.
template <typename Op>
void suggestSymbol(mlir::InFlightDiagnostic &error, mlir::Operation *from, llvm::StringRef name) {
  llvm::StringRef nearest;
  unsigned best = std::max<unsigned>(2, name.size() / 2) + 1;
  auto module = from->getParentOfType<mlir::ModuleOp>();
  for (auto candidate : module.getOps<Op>())
    if (unsigned distance = name.edit_distance(candidate.getSymName(), true, best); distance < best) {
      nearest = candidate.getSymName();
      best = distance;
    }
  if (!nearest.empty())
    error << ", did you mean '" << nearest << "'?";
}

/// The variable that `op` names, or an error with the constraint `label`.
mlir::FailureOr<VariableOp> findVariable(mlir::Operation *op, mlir::FlatSymbolRefAttr name,
                                         llvm::StringRef label, mlir::SymbolTableCollection &symbols);

/// The function that `op` names in its role ("callee", "loss"), or an error with the constraint `label`.
mlir::FailureOr<mlir::func::FuncOp> findFunction(mlir::Operation *op, mlir::FlatSymbolRefAttr name,
                                                 llvm::StringRef role, llvm::StringRef label,
                                                 mlir::SymbolTableCollection &symbols);

} // namespace gpuc::ir
