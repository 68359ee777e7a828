//===- WrittenAgain.h - Results that the backward pass writes again -----------===//
//
// A kernel of the backward pass may write what the forward pass has written before, so that it need not be
// kept (gpuc-fuse). The kernel says so in an attribute, by the number of its result, the first kernel's name
// and the number of the result there, for whoever would rather have the first one read.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc {

/// Of a command, the kernels whose results it writes again, by name.
inline constexpr llvm::StringLiteral kWritesAgainAttr = "gpuc.writes_again";

/// Says at the kernel of `result` that it is `first`, which the forward pass has written before.
void noteWrittenAgain(mlir::OpResult result, mlir::OpResult first);

/// Of a kernel: the names of those whose results it writes again, each once. None of other ops.
llvm::SmallVector<llvm::StringRef> writtenAgainBy(mlir::Operation *kernel);

/// Whether a kernel of the step writes again what another one has written.
bool writesAgain(mlir::func::FuncOp step);

/// Has the backward pass read what was written first, of which `isRead` holds, and no more written again by
/// `writer`.
void readFirstWritten(mlir::func::FuncOp step,
                      llvm::function_ref<bool(mlir::Value first, mlir::Operation *writer)> isRead);

} // namespace gpuc
