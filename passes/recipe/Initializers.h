//===- Initializers.h - The values that variables begin with ----------------===//
//
// Initializers are those of torch.nn.init. Of kaiming_uniform and kaiming_normal the negative slope `a` has
// the default with which layers call them: √5 and 0.
//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc {

/// Builds the first value of `variable`, whole where ranks share it out. What is drawn comes from Philox with
/// key (`seed`, `step`, `id`). An unknown initializer or key, or numbers to be drawn for integers, is an
/// error.
llvm::FailureOr<mlir::Value> buildInitialValue(mlir::OpBuilder &builder, ir::VariableOp variable,
                                               mlir::Value seed, mlir::Value step, int64_t id);

} // namespace gpuc
