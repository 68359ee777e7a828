//===- Logic.cpp - Logic, selection, casts and sources -----------------------===//

#include "test/reference/OpTable.h"

#include <cmath>

using namespace mlir;

namespace gpuc::reference {

template <typename Op> static void addBitwise(OpTable &table, int64_t (*combine)(int64_t, int64_t)) {
  table.add<Op>([combine](Op op, Operands x) {
    Tensor result(x[0].type);
    for (int64_t i = 0; i < result.size(); ++i)
      result.elements[i].integer =
          wrapped(combine(x[0].elements[i].integer, x[1].elements[i].integer), result.type.getElementType());
    return result;
  });
}

static Tensor complement(ir::NotOp op, Operands x) {
  Tensor result(x[0].type);
  for (int64_t i = 0; i < result.size(); ++i)
    result.elements[i].integer = wrapped(~x[0].elements[i].integer, result.type.getElementType());
  return result;
}

//===----------------------------------------------------------------------===//
// Comparison and selection
//===----------------------------------------------------------------------===//

template <typename Number> static bool holds(ir::Comparison predicate, Number a, Number b) {
  switch (predicate) {
  case ir::Comparison::eq:
    return a == b;
  case ir::Comparison::ne:
    return a != b;
  case ir::Comparison::lt:
    return a < b;
  case ir::Comparison::le:
    return a <= b;
  case ir::Comparison::gt:
    return a > b;
  case ir::Comparison::ge:
    return a >= b;
  }
  llvm_unreachable("no such predicate");
}

static Tensor compare(ir::CompareOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  for (int64_t i = 0; i < result.size(); ++i) {
    const Element &a = x[0].elements[i], &b = x[1].elements[i];
    result.elements[i].integer = x[0].isFloat() ? holds(op.getPredicate(), a.real, b.real)
                                                : holds(op.getPredicate(), a.integer, b.integer);
  }
  return result;
}

static Tensor select(ir::SelectOp op, Operands x) {
  Tensor result(x[1].type);
  for (int64_t i = 0; i < result.size(); ++i)
    result.elements[i] = x[0].elements[i].integer ? x[1].elements[i] : x[2].elements[i];
  return result;
}

static Tensor isFinite(ir::IsFiniteOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  for (int64_t i = 0; i < result.size(); ++i)
    result.elements[i].integer = std::isfinite(x[0].elements[i].real);
  return result;
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// Toward zero, saturated, NaN to 0.
static int64_t toInteger(double x, Type element) {
  if (std::isnan(x))
    return 0;
  unsigned width = element.getIntOrFloatBitWidth();
  bool isUnsigned = element.isUnsignedInteger();
  double low = isUnsigned ? 0 : -std::exp2(width - 1), above = std::exp2(isUnsigned ? width : width - 1);
  if (x <= low)
    return isUnsigned ? 0 : static_cast<int64_t>(low);
  // 2^63 - 1 is no f64; the comparison with the power of two above it is exact.
  return x >= above ? static_cast<int64_t>(static_cast<uint64_t>(above) - 1) : static_cast<int64_t>(x);
}

static Tensor cast(ir::CastOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  Type element = result.type.getElementType();
  for (int64_t i = 0; i < result.size(); ++i) {
    const Element &from = x[0].elements[i];
    Element &to = result.elements[i];
    if (result.isFloat())
      to.real = x[0].isFloat() ? from.real : static_cast<double>(from.integer);
    else if (element.isInteger(1))
      to.integer = x[0].isFloat() ? from.real != 0 : from.integer != 0;
    else
      to.integer = x[0].isFloat() ? toInteger(from.real, element) : wrapped(from.integer, element);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

static Element elementOf(Attribute number) {
  if (auto real = dyn_cast<FloatAttr>(number)) {
    // convertToDouble of APFloat wants f32 or f64; FloatAttr knows how to widen the others.
    return {real.getValueAsDouble(), 0};
  }
  auto integer = llvm::cast<IntegerAttr>(number);
  const APInt &value = integer.getValue();
  bool isSigned = value.getBitWidth() > 1 && !integer.getType().isUnsignedInteger();
  return {0, isSigned ? value.getSExtValue() : static_cast<int64_t>(value.getZExtValue())};
}

static Tensor constant(ir::ConstantOp op, Operands) {
  Tensor result(typeOf(op.getResult()));
  if (TypedAttr splat = op.getSplat()) {
    llvm::fill(result.elements, elementOf(splat));
    return result;
  }
  auto dense = llvm::cast<DenseElementsAttr>(op.getValue());
  for (auto [element, number] : llvm::zip_equal(result.elements, dense.getValues<Attribute>()))
    element = elementOf(number);
  return result;
}

static Tensor iota(ir::IotaOp op, Operands) {
  Tensor result(typeOf(op.getResult()));
  forEachIndex(result.shape(), [&](ArrayRef<int64_t> index) {
    Element &element = result.elements[positionOf(index, result.shape())];
    element = {static_cast<double>(index[op.getDim()]),
               wrapped(index[op.getDim()], result.type.getElementType())};
  });
  return result;
}

void addLogicOps(OpTable &table) {
  addBitwise<ir::AndOp>(table, [](int64_t a, int64_t b) { return a & b; });
  addBitwise<ir::OrOp>(table, [](int64_t a, int64_t b) { return a | b; });
  addBitwise<ir::XorOp>(table, [](int64_t a, int64_t b) { return a ^ b; });
  table.add<ir::NotOp>(complement);
  table.add<ir::CompareOp>(compare);
  table.add<ir::SelectOp>(select);
  table.add<ir::IsFiniteOp>(isFinite);
  table.add<ir::CastOp>(cast);
  table.add<ir::ConstantOp>(constant);
  table.add<ir::IotaOp>(iota);
  table.add<ir::StopGradientOp>([](ir::StopGradientOp op, Operands x) { return x[0]; });
  table.add<ir::ScaleGradientOp>([](ir::ScaleGradientOp op, Operands x) { return x[0]; });
}

} // namespace gpuc::reference
