//===- Tf32.h - Products of f32 that a GPU may round -------------------------===//
//
// An op marked `gpuc.tf32` is computed on tensor cores: its f32 operands are rounded to TF32 (the exponent of
// f32, 10 bits of mantissa), multiplied, and summed in f32. It is an attribute beside the op's own: types
// stay f32, and whoever drops it makes the result more exact, never wrong. What an op is replaced by, its
// derivative and its definition, inherits the mark.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc::ir {

constexpr llvm::StringLiteral kTf32Attr = "gpuc.tf32";

/// Whether the op, or its definition, multiplies matrices of f32.
bool holdsF32Products(mlir::Operation *op);

/// Whether tensor cores multiply what the op multiplies: f16, bf16, or f32 that may be rounded.
bool multipliesOnTensorCores(mlir::Operation *op);

/// What the dialect's description says of the mark.
llvm::LogicalResult verifyTf32(mlir::Operation *op, mlir::Attribute mark);

inline bool isTf32(mlir::Operation *op) { return op->hasAttr(kTf32Attr); }

/// Marks the op, and what is in its regions, where they hold products.
void markTf32(mlir::Operation *op);

/// Marks `part` if `whole` is marked.
inline void inheritTf32(mlir::Operation *whole, mlir::Operation *part) {
  if (isTf32(whole))
    markTf32(part);
}

} // namespace gpuc::ir
