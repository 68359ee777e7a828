//===- HostRun.h - A function through the whole compiler, on this CPU --------===//
#pragma once

#include "test/reference/Tensor.h"

#include "runtime/base/status.h"

#include <string>
#include <vector>

namespace gpuc::gradients {

/// Compiles the module `text` (its functions as they are; no recipe) for the host and runs its public
/// function `@f`, with @seed and @step as makeInterpreter has them. `optLevel` as -O of gpuc-compile.
Result<std::vector<reference::Tensor>> runOnHost(const std::string &text,
                                                 llvm::ArrayRef<reference::Tensor> arguments,
                                                 llvm::ArrayRef<mlir::RankedTensorType> resultTypes,
                                                 int optLevel = 3);

} // namespace gpuc::gradients
