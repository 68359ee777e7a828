//===- GpucFolders.cpp - Elementwise ops whose operands are known -----------===//
//
// No fold changes a result by a bit: x + 0 is not x for x = -0, 0 · x is not 0 for NaN, and what would be NaN
// is left to the machine, whose NaN may have another sign.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/TypeChecks.h"

using namespace mlir;

namespace gpuc::ir {

/// The constant is this number, with this sign of zero.
static bool isNumber(Attribute operand, double number) {
  Attribute splat = splatOf(operand);
  if (auto value = dyn_cast_or_null<FloatAttr>(splat))
    return value.getValue().bitwiseIsEqual(cast<FloatAttr>(splatNumber(value.getType(), number)).getValue());
  if (auto value = dyn_cast_or_null<IntegerAttr>(splat))
    return splat == splatNumber(value.getType(), number);
  return false;
}

static bool isFloat(Value value) { return isa<FloatType>(tensorType(value).getElementType()); }

using FloatOperation = APFloat::opStatus (APFloat::*)(const APFloat &, APFloat::roundingMode);

/// Two splats of one type, computed in that type.
template <typename IntegerOperation>
static OpFoldResult foldArithmetic(Attribute lhs, Attribute rhs, FloatOperation onFloats,
                                   IntegerOperation onIntegers) {
  lhs = splatOf(lhs);
  rhs = splatOf(rhs);
  if (auto a = dyn_cast_or_null<FloatAttr>(lhs), b = dyn_cast_or_null<FloatAttr>(rhs); a && b) {
    APFloat result = a.getValue();
    (result.*onFloats)(b.getValue(), APFloat::rmNearestTiesToEven);
    return result.isNaN() ? OpFoldResult() : FloatAttr::get(a.getType(), result);
  }
  if (auto a = dyn_cast_or_null<IntegerAttr>(lhs), b = dyn_cast_or_null<IntegerAttr>(rhs); a && b)
    return IntegerAttr::get(a.getType(), onIntegers(a.getValue(), b.getValue()));
  return {};
}

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  if (isNumber(adaptor.getRhs(), isFloat(getLhs()) ? -0.0 : 0.0))
    return getLhs();
  return foldArithmetic(adaptor.getLhs(), adaptor.getRhs(), &APFloat::add,
                        [](const APInt &a, const APInt &b) { return a + b; });
}

OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  if (isNumber(adaptor.getRhs(), 0.0))
    return getLhs();
  return foldArithmetic(adaptor.getLhs(), adaptor.getRhs(), &APFloat::subtract,
                        [](const APInt &a, const APInt &b) { return a - b; });
}

OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (isNumber(adaptor.getRhs(), 1.0))
    return getLhs();
  if (!isFloat(getLhs()) && isNumber(adaptor.getRhs(), 0.0))
    return splatOf(adaptor.getRhs());
  return foldArithmetic(adaptor.getLhs(), adaptor.getRhs(), &APFloat::multiply,
                        [](const APInt &a, const APInt &b) { return a * b; });
}

/// Quotients of integers are left alone but for x / 1: a zero or an overflow is the machine's.
OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  if (isNumber(adaptor.getRhs(), 1.0))
    return getLhs();
  if (!isFloat(getLhs()))
    return {};
  return foldArithmetic(adaptor.getLhs(), adaptor.getRhs(), &APFloat::divide,
                        [](const APInt &a, const APInt &) { return a; });
}

OpFoldResult NegOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getOperand().getDefiningOp<NegOp>())
    return inner.getOperand();
  Attribute splat = splatOf(adaptor.getOperand());
  if (auto value = dyn_cast_or_null<FloatAttr>(splat))
    return FloatAttr::get(value.getType(), -value.getValue());
  if (auto value = dyn_cast_or_null<IntegerAttr>(splat))
    return IntegerAttr::get(value.getType(), -value.getValue());
  return {};
}

OpFoldResult MaxOp::fold(FoldAdaptor) { return getLhs() == getRhs() ? getLhs() : OpFoldResult(); }
OpFoldResult MinOp::fold(FoldAdaptor) { return getLhs() == getRhs() ? getLhs() : OpFoldResult(); }

//===----------------------------------------------------------------------===//
// Logic
//===----------------------------------------------------------------------===//

/// x op x is x; a constant of no bits or of all decides or falls away.
static OpFoldResult foldLattice(Value lhs, Value rhs, Attribute constant, bool onesDecide) {
  if (lhs == rhs)
    return lhs;
  auto value = dyn_cast_or_null<IntegerAttr>(splatOf(constant));
  if (!value || !(value.getValue().isAllOnes() || value.getValue().isZero()))
    return {};
  return value.getValue().isAllOnes() == onesDecide ? OpFoldResult(value) : OpFoldResult(lhs);
}

OpFoldResult AndOp::fold(FoldAdaptor adaptor) {
  return foldLattice(getLhs(), getRhs(), adaptor.getRhs(), /*onesDecide=*/false);
}

OpFoldResult OrOp::fold(FoldAdaptor adaptor) {
  return foldLattice(getLhs(), getRhs(), adaptor.getRhs(), /*onesDecide=*/true);
}

OpFoldResult NotOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getOperand().getDefiningOp<NotOp>())
    return inner.getOperand();
  auto value = dyn_cast_or_null<IntegerAttr>(splatOf(adaptor.getOperand()));
  return value ? IntegerAttr::get(value.getType(), ~value.getValue()) : OpFoldResult();
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getOnTrue() == getOnFalse())
    return getOnTrue();
  auto condition = dyn_cast_or_null<IntegerAttr>(splatOf(adaptor.getCondition()));
  return condition ? OpFoldResult(condition.getValue().isZero() ? getOnFalse() : getOnTrue())
                   : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// Cast
//===----------------------------------------------------------------------===//

static OpFoldResult castFloat(const APFloat &value, Type element) {
  bool isExact;
  if (auto type = dyn_cast<FloatType>(element)) {
    APFloat result = value;
    result.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &isExact);
    return result.isNaN() ? OpFoldResult() : FloatAttr::get(type, result);
  }
  auto type = cast<IntegerType>(element);
  if (type.getWidth() == 1 || value.isNaN())
    return {};
  APSInt result(type.getWidth(), type.isUnsigned());
  // Out of range is saturated, which convertToInteger does too, but it says that it is invalid.
  value.convertToInteger(result, APFloat::rmTowardZero, &isExact);
  return IntegerAttr::get(type, result);
}

static OpFoldResult castInteger(IntegerAttr value, Type element) {
  auto from = cast<IntegerType>(value.getType());
  bool isUnsigned = from.isUnsigned() || from.getWidth() == 1;
  if (auto type = dyn_cast<FloatType>(element)) {
    APFloat result(type.getFloatSemantics());
    result.convertFromAPInt(value.getValue(), !isUnsigned, APFloat::rmNearestTiesToEven);
    return FloatAttr::get(type, result);
  }
  auto type = cast<IntegerType>(element);
  if (type.getWidth() == 1)
    return IntegerAttr::get(type, APInt(1, !value.getValue().isZero()));
  APInt wide = isUnsigned ? value.getValue().zext(65) : value.getValue().sext(65);
  return IntegerAttr::get(type, wide.trunc(type.getWidth()));
}

OpFoldResult CastOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  Type element = getType().getElementType();
  Attribute splat = splatOf(adaptor.getOperand());
  if (auto value = dyn_cast_or_null<FloatAttr>(splat))
    return castFloat(value.getValue(), element);
  if (auto value = dyn_cast_or_null<IntegerAttr>(splat))
    return castInteger(value, element);
  return {};
}

} // namespace gpuc::ir
