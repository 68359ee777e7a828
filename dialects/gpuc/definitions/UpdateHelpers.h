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

/// What an update keeps, with 0 for what is below the least normal number. A weight that gets no gradient any
/// more lets its mean sink there, never to leave (0.9 of the least number of all rounds to itself), and CPUs
/// take a hundred times as long for each of those. Denormals of f16 are normal numbers of f32, in which they
/// are computed.
inline Expr withoutDenormals(Expr x) {
  auto type = llvm::cast<mlir::FloatType>(x.elementType());
  if (type.isF16())
    return x;
  double least = llvm::APFloat::getSmallestNormalized(type.getFloatSemantics()).convertToDouble();
  return select(x.make<AbsOp>(x.value()) < least, x.constant(0), x);
}

/// weight - lr · decay · weight: decay that the gradient has no part in; lr is an f64.
inline Expr decayed(Expr weight, Expr lr, const llvm::APFloat &decay) {
  return decay.isZero() ? weight : weight * spreadLike(weight, 1 - lr * decay.convertToDouble());
}

} // namespace gpuc::ir
