//===- Expr.h - Arithmetic in registers, written as arithmetic --------------===//
//
// An Expr is a scalar or a vector in a register together with the builder that computes on it, so that a
// polynomial reads as one. Everything is emitted as arith, math.fma and vector ops without fast-math flags,
// the same for a lane of a vector as for a scalar: that is what keeps the bits of a vector body and its tail
// equal.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

namespace gpuc::codegen {

class Expr {
public:
  Expr() = default;
  Expr(mlir::ImplicitLocOpBuilder &builder, mlir::Value value) : builder_(&builder), value_(value) {}

  mlir::Value value() const { return value_; }
  mlir::Type type() const { return value_.getType(); }
  mlir::ImplicitLocOpBuilder &builder() const { return *builder_; }
  explicit operator bool() const { return static_cast<bool>(value_); }

  mlir::Type elementType() const { return mlir::getElementTypeOrSelf(type()); }
  bool isFloat() const { return llvm::isa<mlir::FloatType>(elementType()); }
  unsigned bitWidth() const { return elementType().getIntOrFloatBitWidth(); }
  /// 1 for a scalar.
  int64_t lanes() const;

  /// The same number in every lane, of this expression's type.
  Expr real(double number) const;
  Expr integer(int64_t number) const;
  /// This expression's shape with another element type.
  mlir::Type withElement(mlir::Type element) const;

private:
  mlir::ImplicitLocOpBuilder *builder_ = nullptr;
  mlir::Value value_;
};

/// A constant of `type`, scalar or vector.
Expr constant(mlir::ImplicitLocOpBuilder &builder, mlir::Type type, double number);
Expr constantInt(mlir::ImplicitLocOpBuilder &builder, mlir::Type type, int64_t number);

/// 0, 1, 2 …: a vector of these integers.
Expr laneNumbers(mlir::ImplicitLocOpBuilder &builder, mlir::Type integer, int64_t lanes);

// Arithmetic on floats, or on integers where the type is one. Integers wrap.
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator-(Expr a);
Expr operator/(Expr a, Expr b); // floats only
inline Expr operator+(Expr a, double b) { return a + a.real(b); }
inline Expr operator-(Expr a, double b) { return a - a.real(b); }
inline Expr operator*(Expr a, double b) { return a * a.real(b); }
inline Expr operator-(double a, Expr b) { return b.real(a) - b; }
inline Expr operator/(double a, Expr b) { return b.real(a) / b; }

// Of integers without a sign.
Expr divideUnsigned(Expr a, int64_t b);
Expr remainderUnsigned(Expr a, int64_t b);

/// a · b + c with one rounding.
Expr fma(Expr a, Expr b, Expr c);
/// c0 + x · (c1 + x · (c2 + …)) by Horner's rule, each step one fma.
Expr horner(Expr x, llvm::ArrayRef<double> coefficients);

Expr abs(Expr a);
Expr sqrt(Expr a);
Expr floor(Expr a);
Expr ceil(Expr a);
Expr trunc(Expr a);
Expr roundEven(Expr a);
/// The magnitude of `a` with the sign of `b`.
Expr copySign(Expr a, Expr b);

// Comparisons give i1 lanes. Of floats they are ordered (false of NaN), but for `notEqual`; of integers
// signed.
Expr less(Expr a, Expr b);
Expr lessEqual(Expr a, Expr b);
Expr equal(Expr a, Expr b);
Expr notEqual(Expr a, Expr b);
inline Expr greater(Expr a, Expr b) { return less(b, a); }
inline Expr greaterEqual(Expr a, Expr b) { return lessEqual(b, a); }
/// Of integers without a sign.
Expr below(Expr a, Expr b);
Expr isNan(Expr a);
Expr select(Expr condition, Expr onTrue, Expr onFalse);

// Bits.
Expr operator&(Expr a, Expr b);
Expr operator|(Expr a, Expr b);
Expr operator^(Expr a, Expr b);
Expr shiftLeft(Expr a, int64_t bits);
Expr shiftRight(Expr a, int64_t bits);           // fills with zeros
Expr shiftRightArithmetic(Expr a, int64_t bits); // fills with the sign
/// A float's bits as an integer of the same width, and back.
Expr bitsOf(Expr a);
Expr floatFromBits(Expr a);
Expr bitcast(Expr a, mlir::Type element);

// Conversions by value.
Expr toFloat(Expr a, mlir::Type element);    // from a signed integer, to the nearest
Expr toInt(Expr a, mlir::Type element);      // truncates; what does not fit is undefined
Expr extend(Expr a, mlir::Type element);     // to a wider float, or sign-extends
Expr zeroExtend(Expr a, mlir::Type element); // to a wider integer, unsigned
Expr narrow(Expr a, mlir::Type element);     // to a narrower float (nearest), or the low bits
Expr splat(Expr scalar, int64_t lanes);      // as it is if it has them already

} // namespace gpuc::codegen
