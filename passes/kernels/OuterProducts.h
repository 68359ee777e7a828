//===- OuterProducts.h - Products over one element ---------------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc {

/// Whether the op is a product that contracts over one element.
bool contractsOneElement(mlir::Operation *op);

/// Puts a multiplication of broadcasts in the place of each product in `block` that contracts over one
/// element, as the gradient of a weight does when the batch is one row. Kernels then compute it where it is
/// read, instead of reading a matrix that was stored; its squared norm becomes the product of the vectors'.
void multiplyOuterProducts(mlir::Block &block);

/// Whether the op is a cheap one of values that are repeated: computing it anew costs less than reading it.
bool isOuterProduct(mlir::Operation *op);

} // namespace gpuc
