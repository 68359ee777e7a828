//===- ExprHelpers.h - Forms that formulas of several ops share -------------===//
//
// Internal to the dialect.
//
#pragma once

#include "dialects/gpuc/Expr.h"

namespace gpuc::ir {

/// The type that an op computes in which promises f32 for f16 and bf16.
mlir::Type wideElement(mlir::Type element);

/// A tensor of `shape` with that element type, of an operand's.
mlir::RankedTensorType wideType(mlir::Value operand, llvm::ArrayRef<int64_t> shape);

/// x in that type.
inline Expr widen(Expr x) { return cast(x, wideElement(x.elementType())); }

/// Whether `from` can be repeated to `to`: aligned at the last dimension, each extent equal or 1.
bool isBroadcastable(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

/// x repeated to `shape` by that rule.
Expr broadcastTo(Expr x, llvm::ArrayRef<int64_t> shape);

/// The transpose of broadcastTo: x summed over all that a tensor of `shape` repeats along.
Expr sumTo(Expr x, llvm::ArrayRef<int64_t> shape);

/// x less its largest element along the dimension, so that no exponential overflows. The shift cancels in the
/// result; it is constant to derivatives, whose ties would otherwise cost work and bits.
Expr lessLargest(Expr x, int64_t dim);

} // namespace gpuc::ir
