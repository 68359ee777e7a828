//===- TensorSizes.h - Tensors whose bytes can be counted ------------------===//
#pragma once

#include "mlir/IR/Operation.h"

namespace gpuc {

/// Bytes are counted in 64 bits: an error at the first tensor of static shape, in `root` or in its regions,
/// that has 2^63 or more.
mlir::LogicalResult checkTensorSizes(mlir::Operation *root);

/// A model computes with no tensor that holds nothing: an error at the first one, a variable among them, that
/// has an extent of 0.
mlir::LogicalResult checkExtents(mlir::Operation *root);

/// Functions compute with tensors alone: an error at the first one that takes, makes or gives something else,
/// or that has several blocks, in `root` or in its regions.
mlir::LogicalResult checkValues(mlir::Operation *root);

} // namespace gpuc
