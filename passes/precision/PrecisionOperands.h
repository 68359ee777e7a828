//===- PrecisionOperands.h - What an operand is to its op --------------------===//
//
// Types of operands alone do not say what PyTorch would do: it sees a bias within the layer, a number as a
// number, a cell as one op. These find such things again.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc {

/// One number for all elements: as a Python number or a tensor of rank 0 in PyTorch, it takes the type of
/// what it is computed with.
bool isWeak(mlir::Value value);

/// One number for all elements that is known, and that `type` cannot hold: it would become infinite, or 0.
bool isNumberBeyond(mlir::Value value, mlir::FloatType type);

/// A vector for all rows, as a layer's bias is.
bool isRepeatedVector(mlir::Value value);

/// A product, a sum of products, or such a thing in another shape; in a loop also a slice of one.
bool comesOfProduct(mlir::Value value);

/// Whether running statistics: these stay in f32 in whatever type the op is computed.
bool staysWide(mlir::OpOperand &operand);

/// Which of the values that a loop carries are the state of a recurrent cell: what follows on them comes of a
/// product of what is carried, and then is of the product's type. What is only added to is a sum, of the type
/// of its start.
llvm::SmallVector<bool> findStates(ir::ScanOp scan);

} // namespace gpuc
