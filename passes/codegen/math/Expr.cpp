//===- Expr.cpp - Arithmetic in registers, written as arithmetic ------------===//

#include "passes/codegen/math/Expr.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace gpuc::codegen {

int64_t Expr::lanes() const {
  auto vector = dyn_cast<VectorType>(type());
  return vector ? vector.getNumElements() : 1;
}

Type Expr::withElement(Type element) const {
  auto vector = dyn_cast<VectorType>(type());
  return vector ? VectorType::get(vector.getShape(), element) : element;
}

Expr constantInt(ImplicitLocOpBuilder &builder, Type type, int64_t number) {
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  TypedAttr attribute = builder.getIntegerAttr(
      getElementTypeOrSelf(type), APInt(width, number, /*isSigned=*/true, /*implicitTrunc=*/true));
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, attribute);
  return {builder, arith::ConstantOp::create(builder, attribute)};
}

Expr constant(ImplicitLocOpBuilder &builder, Type type, double number) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  if (!element)
    return constantInt(builder, type, static_cast<int64_t>(number));
  TypedAttr attribute = builder.getFloatAttr(element, number);
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, attribute);
  return {builder, arith::ConstantOp::create(builder, attribute)};
}

Expr laneNumbers(ImplicitLocOpBuilder &builder, Type integer, int64_t lanes) {
  auto numbers = llvm::map_to_vector(llvm::seq<int64_t>(0, lanes), [&](int64_t lane) -> Attribute {
    return builder.getIntegerAttr(integer, lane);
  });
  auto type = VectorType::get({lanes}, integer);
  return {builder, arith::ConstantOp::create(builder, type, DenseElementsAttr::get(type, numbers))};
}

Expr Expr::real(double number) const { return constant(*builder_, type(), number); }
Expr Expr::integer(int64_t number) const { return constantInt(*builder_, type(), number); }

/// The float or the integer op, as the type asks.
template <typename FloatOp, typename IntOp> static Expr binary(Expr a, Expr b) {
  if (a.isFloat())
    return {a.builder(), FloatOp::create(a.builder(), a.value(), b.value())};
  return {a.builder(), IntOp::create(a.builder(), a.value(), b.value())};
}
template <typename Op> static Expr unary(Expr a) { return {a.builder(), Op::create(a.builder(), a.value())}; }
template <typename Op> static Expr convert(Expr a, Type element) {
  return {a.builder(), Op::create(a.builder(), a.withElement(element), a.value())};
}

Expr operator+(Expr a, Expr b) { return binary<arith::AddFOp, arith::AddIOp>(a, b); }
Expr operator-(Expr a, Expr b) { return binary<arith::SubFOp, arith::SubIOp>(a, b); }
Expr operator*(Expr a, Expr b) { return binary<arith::MulFOp, arith::MulIOp>(a, b); }
Expr operator/(Expr a, Expr b) {
  return {a.builder(), arith::DivFOp::create(a.builder(), a.value(), b.value())};
}
Expr divideUnsigned(Expr a, int64_t b) { return binary<arith::DivUIOp, arith::DivUIOp>(a, a.integer(b)); }
Expr remainderUnsigned(Expr a, int64_t b) { return binary<arith::RemUIOp, arith::RemUIOp>(a, a.integer(b)); }
Expr operator-(Expr a) { return a.isFloat() ? unary<arith::NegFOp>(a) : a.integer(0) - a; }

Expr fma(Expr a, Expr b, Expr c) {
  return {a.builder(), math::FmaOp::create(a.builder(), a.value(), b.value(), c.value())};
}

Expr horner(Expr x, ArrayRef<double> coefficients) {
  Expr sum = x.real(coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    sum = fma(sum, x, x.real(coefficient));
  return sum;
}

Expr abs(Expr a) { return a.isFloat() ? unary<math::AbsFOp>(a) : select(less(a, a.integer(0)), -a, a); }
Expr sqrt(Expr a) { return unary<math::SqrtOp>(a); }
Expr floor(Expr a) { return unary<math::FloorOp>(a); }
Expr ceil(Expr a) { return unary<math::CeilOp>(a); }
Expr trunc(Expr a) { return unary<math::TruncOp>(a); }
Expr roundEven(Expr a) { return unary<math::RoundEvenOp>(a); }
Expr copySign(Expr a, Expr b) {
  return {a.builder(), math::CopySignOp::create(a.builder(), a.value(), b.value())};
}

static Expr compare(Expr a, Expr b, arith::CmpFPredicate onFloats, arith::CmpIPredicate onIntegers) {
  if (a.isFloat())
    return {a.builder(), arith::CmpFOp::create(a.builder(), onFloats, a.value(), b.value())};
  return {a.builder(), arith::CmpIOp::create(a.builder(), onIntegers, a.value(), b.value())};
}
Expr less(Expr a, Expr b) { return compare(a, b, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt); }
Expr lessEqual(Expr a, Expr b) { return compare(a, b, arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle); }
Expr equal(Expr a, Expr b) { return compare(a, b, arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq); }
Expr notEqual(Expr a, Expr b) { return compare(a, b, arith::CmpFPredicate::UNE, arith::CmpIPredicate::ne); }
Expr isNan(Expr a) { return compare(a, a, arith::CmpFPredicate::UNO, arith::CmpIPredicate::ne); }
Expr below(Expr a, Expr b) {
  return {a.builder(), arith::CmpIOp::create(a.builder(), arith::CmpIPredicate::ult, a.value(), b.value())};
}
Expr select(Expr condition, Expr onTrue, Expr onFalse) {
  return {onTrue.builder(),
          arith::SelectOp::create(onTrue.builder(), condition.value(), onTrue.value(), onFalse.value())};
}

Expr operator&(Expr a, Expr b) { return binary<arith::AndIOp, arith::AndIOp>(a, b); }
Expr operator|(Expr a, Expr b) { return binary<arith::OrIOp, arith::OrIOp>(a, b); }
Expr operator^(Expr a, Expr b) { return binary<arith::XOrIOp, arith::XOrIOp>(a, b); }
Expr shiftLeft(Expr a, int64_t bits) { return binary<arith::ShLIOp, arith::ShLIOp>(a, a.integer(bits)); }
Expr shiftRight(Expr a, int64_t bits) { return binary<arith::ShRUIOp, arith::ShRUIOp>(a, a.integer(bits)); }
Expr shiftRightArithmetic(Expr a, int64_t bits) {
  return binary<arith::ShRSIOp, arith::ShRSIOp>(a, a.integer(bits));
}

Expr bitcast(Expr a, Type element) { return convert<arith::BitcastOp>(a, element); }
Expr bitsOf(Expr a) { return bitcast(a, a.builder().getIntegerType(a.bitWidth())); }
Expr floatFromBits(Expr a) {
  return bitcast(a, a.bitWidth() == 64 ? Type(a.builder().getF64Type()) : a.builder().getF32Type());
}

Expr toFloat(Expr a, Type element) { return convert<arith::SIToFPOp>(a, element); }
Expr toInt(Expr a, Type element) { return convert<arith::FPToSIOp>(a, element); }
Expr extend(Expr a, Type element) {
  return a.isFloat() ? convert<arith::ExtFOp>(a, element) : convert<arith::ExtSIOp>(a, element);
}
Expr zeroExtend(Expr a, Type element) { return convert<arith::ExtUIOp>(a, element); }
Expr narrow(Expr a, Type element) {
  return a.isFloat() ? convert<arith::TruncFOp>(a, element) : convert<arith::TruncIOp>(a, element);
}

Expr splat(Expr scalar, int64_t lanes) {
  if (lanes == 1 || scalar.lanes() == lanes)
    return scalar;
  Type vector = VectorType::get({lanes}, scalar.type());
  return {scalar.builder(), vector::BroadcastOp::create(scalar.builder(), vector, scalar.value())};
}

} // namespace gpuc::codegen
