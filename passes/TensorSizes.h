//===- TensorSizes.h - Tensors whose bytes can be counted ------------------===//
#pragma once

#include "mlir/IR/Operation.h"

namespace gpuc {

/// Bytes are counted in 64 bits: an error at the first tensor of static shape, in `root` or in its regions,
/// that has 2^63 or more.
mlir::LogicalResult checkTensorSizes(mlir::Operation *root);

} // namespace gpuc
