//===- DeviceRun.h - A function through the whole compiler, on a device ------===//
#pragma once

#include "test/reference/Tensor.h"

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace gpuc::gradients {

/// The device under test, as sessions name it: what GPUC_TEST_DEVICE says (cuda), else host.
std::string testDevice();

/// Whether that device is here; else the reason why not.
Status findTestDevice();

/// A tensor's elements as a device has them, row-major, each of its type.
std::vector<std::byte> bytesOf(const reference::Tensor &tensor);

/// The tensor that such bytes are.
reference::Tensor tensorOf(const std::byte *bytes, mlir::RankedTensorType type);

/// Called with each plan, and what it was made of, before it is loaded; does nothing unless it is set.
std::function<void(mlir::ModuleOp, const Plan &)> &beforeLoading();

/// Compiles the module `text` (its functions as they are; no recipe) for testDevice() and runs its public
/// function `@f`, with @seed and @step as makeInterpreter has them. `optLevel` as -O of gpuc-compile.
Result<std::vector<reference::Tensor>> runOnDevice(const std::string &text,
                                                   llvm::ArrayRef<reference::Tensor> arguments,
                                                   llvm::ArrayRef<mlir::RankedTensorType> resultTypes,
                                                   int optLevel = 3);

} // namespace gpuc::gradients
