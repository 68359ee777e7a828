//===- KernelText.h - What makes two kernels equal --------------------------===//
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace gpuc::codegen {

/// A kernel's body without names and places. Kernels of equal text have equal code.
std::string textOfBody(mlir::Block &body);

/// A module likewise.
std::string textOfModule(mlir::ModuleOp module);

} // namespace gpuc::codegen
