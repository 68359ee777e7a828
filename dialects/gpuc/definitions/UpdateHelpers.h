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

/// A number of an update: an attribute, or a scalar that whoever runs the plan gives in its place.
struct UpdateNumber {
  double attribute;
  Expr given; ///< An f64, or null.

  bool isZero() const { return !given.value() && attribute == 0; }
  UpdateNumber oneMinus() const { return {1 - attribute, given.value() ? 1 - given : Expr()}; }
  /// As an f64 beside `scalar`, which is one.
  Expr beside(Expr scalar) const { return given.value() ? given : scalar.constant(attribute); }
};

inline Expr operator*(const UpdateNumber &number, Expr tensor) {
  return number.given.value() ? spreadLike(tensor, number.given) * tensor : number.attribute * tensor;
}

/// The number `name` of `op`, whose attribute is `attribute`; `weight` says where to build.
template <typename Update>
UpdateNumber updateNumber(Update op, Expr weight, llvm::StringRef name, const llvm::APFloat &attribute) {
  UpdateNumber number{attribute.convertToDouble(), Expr()};
  if (std::optional<mlir::ArrayAttr> names = op.getGivenNumbers())
    for (auto [given, scalar] :
         llvm::zip_equal(names->template getAsValueRange<mlir::StringAttr>(), op.getGiven()))
      if (given == name)
        number.given = asF64(weight.at(scalar));
  return number;
}

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
inline Expr decayed(Expr weight, Expr lr, const UpdateNumber &decay) {
  return decay.isZero() ? weight : weight * spreadLike(weight, 1 - lr * decay.beside(lr));
}
inline Expr decayed(Expr weight, Expr lr, const llvm::APFloat &decay) {
  return decayed(weight, lr, UpdateNumber{decay.convertToDouble(), Expr()});
}

} // namespace gpuc::ir
