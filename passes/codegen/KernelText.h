//===- KernelText.h - What makes two kernels equal --------------------------===//
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace gpuc::codegen {

/// A kernel's body without names and places, for comparing alone. Kernels of equal text have equal code.
std::string textOfBody(mlir::Block &body);

/// What a kernel computes, whatever the shapes that it computes it of: equal for kernels that differ in those
/// alone. Tensors of one element are told from others.
std::string textWithoutShapes(mlir::Block &body);

/// The text of a module, likewise without names and places.
std::string textOfModule(mlir::ModuleOp module);

} // namespace gpuc::codegen
