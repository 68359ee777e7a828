//===- VerifyKernels.h - What holds of entries that consist of kernels ------===//
#pragma once

#include "passes/base/Blame.h"

#include "mlir/IR/BuiltinOps.h"

namespace gpuc {

/// Whether the module is as gpuc-fuse and gpuc-join-checks leave it, as Passes.td says under
/// gpuc-verify-stage.
mlir::LogicalResult verifyKernels(mlir::ModuleOp module, const Blame &blame);

} // namespace gpuc
