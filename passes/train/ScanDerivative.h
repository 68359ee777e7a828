//===- ScanDerivative.h - The gradient of a loop over time -------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc {

using VariesFn = llvm::function_ref<bool(mlir::Value)>;

/// The results of a scan that vary with those of its operands that do.
llvm::SmallVector<mlir::Value> variedResults(ir::ScanOp scan, VariesFn varies);

/// Builds the gradient of a scan where `builder` stands: a scan in the other direction, over what the forward
/// one stacks for it. `given` are the cotangents of the results, null where there is none; `computed` become
/// those of the operands, null where an operand does not vary or has no part in it.
///
/// Returns the forward scan that does the stacking. It stands in front of the old one, which has no uses any
/// more and is the caller's to erase.
mlir::FailureOr<ir::ScanOp> differentiateScan(ir::ScanOp scan, mlir::OpBuilder &builder,
                                              llvm::ArrayRef<mlir::Value> given, VariesFn varies,
                                              llvm::SmallVectorImpl<mlir::Value> &computed);

} // namespace gpuc
