//===- Outliers.h - Updates that are left out because they stand out --------===//
#pragma once

#include "passes/base/Specs.h"

namespace gpuc {

/// A recipe's `skip = outliers(loss = Z, grad_norm = Z, window = 128)`, as llm.c's -sl and -sg: an update is
/// left out if its loss, or the norm of its gradient, is more than Z standard deviations above the mean of
/// the last `window` values, its own among them. The window must be full first. Values that are not finite
/// are left out always, and are not among those that later ones are held against.
class Outliers {
public:
  /// Unknown names and keys, and bounds that nothing can exceed, are errors.
  static llvm::FailureOr<Outliers> fromSpec(ir::SpecAttr spec, EmitError emitError);

  /// Builds whether an update with this mean loss and this norm (floating-point scalars) is made: tensor<i1>.
  /// The windows are counters of the module, which are declared and assigned.
  mlir::Value buildKeep(mlir::ModuleOp module, mlir::OpBuilder &builder, mlir::Location location,
                        mlir::Value loss, mlir::Value norm) const;

private:
  /// The greatest score; none if the value is not watched.
  std::optional<double> loss_, norm_;
  int64_t window_;
};

} // namespace gpuc
