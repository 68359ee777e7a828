//===- UpdateHelpers.h - What the definitions of updates share --------------===//
//
// Internal to the dialect.
//
#pragma once

#include "dialects/gpuc/ExprHelpers.h"

namespace gpuc::ir {

/// A scalar, rounded to the tensor's type, in each element of a tensor of its shape.
inline Expr spreadLike(Expr tensor, Expr scalar) {
  return broadcastScalar(cast(scalar, tensor.elementType()), tensor.shape());
}

inline Expr asF64(Expr scalar) { return cast(scalar, mlir::Float64Type::get(scalar.value().getContext())); }

/// weight - lr · decay · weight: decay that the gradient has no part in; lr is an f64.
inline Expr decayed(Expr weight, Expr lr, const llvm::APFloat &decay) {
  return decay.isZero() ? weight : weight * spreadLike(weight, 1 - lr * decay.convertToDouble());
}

} // namespace gpuc::ir
