//===- SourceText.h - What MLIR's parser is about to read ------------------===//
#pragma once

#include "mlir/Support/LLVM.h"

namespace llvm {
class SourceMgr;
}
namespace mlir {
class MLIRContext;
}

namespace gpuc {

/// Fails, with an error at its place, if the text that MLIR's parser would read of `sources` is none that it
/// can be given (ModuleText.h).
mlir::LogicalResult checkSourceText(const llvm::SourceMgr &sources, mlir::MLIRContext *context);

} // namespace gpuc
