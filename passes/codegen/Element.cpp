//===- Element.cpp - Element types in memory and in registers ---------------===//

#include "passes/codegen/Element.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace gpuc::codegen {

ElementKind elementKind(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (auto integer = dyn_cast<IntegerType>(element)) {
    switch (integer.getWidth()) {
    case 1:
      return ElementKind::I1;
    case 8:
      return integer.isUnsigned() ? ElementKind::UI8 : ElementKind::I8;
    case 32:
      return ElementKind::I32;
    default:
      return ElementKind::I64;
    }
  }
  return element.isF64()    ? ElementKind::F64
         : element.isF32()  ? ElementKind::F32
         : element.isBF16() ? ElementKind::BF16
                            : ElementKind::F16;
}

bool isFloat(ElementKind kind) { return kind <= ElementKind::BF16; }
bool isUnsigned(ElementKind kind) { return kind >= ElementKind::UI8; }

int64_t bytesOf(ElementKind kind) {
  static constexpr int64_t bytes[] = {8, 4, 2, 2, 8, 4, 1, 1, 1}; // in the order of the kinds
  return bytes[static_cast<size_t>(kind)];
}

static Type withLanes(Type element, int64_t lanes) {
  return lanes == 1 ? element : VectorType::get({lanes}, element);
}

Type registerType(MLIRContext *context, ElementKind kind, int64_t lanes) {
  if (kind == ElementKind::I1)
    return withLanes(IntegerType::get(context, 1), lanes);
  return memoryType(context, kind, lanes);
}

Type memoryType(MLIRContext *context, ElementKind kind, int64_t lanes) {
  if (kind == ElementKind::F64)
    return withLanes(Float64Type::get(context), lanes);
  if (kind == ElementKind::F32)
    return withLanes(Float32Type::get(context), lanes);
  return withLanes(IntegerType::get(context, 8 * bytesOf(kind)), lanes);
}

Expr fromMemory(Expr loaded, ElementKind kind) {
  return kind == ElementKind::I1 ? notEqual(loaded, loaded.integer(0)) : loaded;
}

Expr toMemory(Expr value, ElementKind kind) {
  return kind == ElementKind::I1 ? zeroExtend(value, value.builder().getI8Type()) : value;
}

//===----------------------------------------------------------------------===//
// 16-bit floats
//===----------------------------------------------------------------------===//

Expr toCompute(Expr value, ElementKind kind) {
  Builder &builder = value.builder();
  if (kind == ElementKind::F16)
    return extend(bitcast(value, builder.getF16Type()), builder.getF32Type());
  if (kind == ElementKind::BF16)
    return floatFromBits(shiftLeft(zeroExtend(value, builder.getI32Type()), 16));
  return value;
}

Expr fromCompute(Expr value, ElementKind kind) {
  Builder &builder = value.builder();
  if (kind == ElementKind::F16)
    return bitcast(narrow(value, builder.getF16Type()), builder.getIntegerType(16));
  if (kind == ElementKind::BF16)
    return bitcast(narrow(value, builder.getBF16Type()), builder.getIntegerType(16));
  return value;
}

Expr bitsOfBfloat16(Expr value) {
  Builder &builder = value.builder();
  Expr bits = bitsOf(value);
  // Half a unit in the last place, less one bit if the last kept bit is even: ties go to even.
  Expr rounding = (shiftRight(bits, 16) & bits.integer(1)) + bits.integer(0x7fff);
  Expr quietNan = bits | bits.integer(0x400000);
  return narrow(shiftRight(select(isNan(value), quietNan, bits + rounding), 16), builder.getIntegerType(16));
}

Expr numberIn(ImplicitLocOpBuilder &builder, ElementKind kind, int64_t lanes, double number) {
  Type type = registerType(builder.getContext(), kind, lanes);
  if (kind != ElementKind::F16 && kind != ElementKind::BF16)
    return constant(builder, type, number);
  APFloat rounded(number);
  bool lossy;
  rounded.convert(kind == ElementKind::F16 ? APFloat::IEEEhalf() : APFloat::BFloat(),
                  APFloat::rmNearestTiesToEven, &lossy);
  return constantInt(builder, type, rounded.bitcastToAPInt().getZExtValue());
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// f64 to f32, "rounded to odd": if inexact, towards zero with the last bit set. What is then rounded to
/// fewer bits comes out as if it had been rounded once [Boldo and Melquiond, "When double rounding is odd",
/// 2005].
static Expr narrowToOdd(Expr value) {
  Builder &builder = value.builder();
  Expr nearest = narrow(value, builder.getF32Type());
  Expr back = extend(nearest, builder.getF64Type());
  Expr bits = bitsOf(nearest);
  Expr truncated = select(less(abs(value), abs(back)), bits - bits.integer(1), bits);
  Expr inexact = select(isNan(value), notEqual(bits, bits), notEqual(back, value));
  return floatFromBits(select(inexact, truncated | bits.integer(1), bits));
}

/// i64 to f64 so that a later rounding to fewer bits is the only one: bits that f64 has no room for leave
/// their mark in the last one kept.
static Expr toFloatWithSticky(Expr value) {
  Builder &builder = value.builder();
  Expr high = value & value.integer(~int64_t(0x7ff));
  Expr lost = notEqual(value & value.integer(0x7ff), value.integer(0));
  Expr marked = select(lost, high | value.integer(0x800), high);
  Expr fits = less(abs(value),
                   value.integer(int64_t(1) << 53)); // abs of the least i64 is negative; its low bits are 0
  return toFloat(select(fits, value, marked), builder.getF64Type());
}

static Expr intToFloat(Expr value, ElementKind from, ElementKind to) {
  Builder &builder = value.builder();
  if (value.bitWidth() < 32)
    value = isUnsigned(from) ? zeroExtend(value, builder.getI32Type()) : extend(value, builder.getI32Type());
  if (to == ElementKind::F64)
    return toFloat(value, builder.getF64Type());
  if (to == ElementKind::F32 || from == ElementKind::UI8 || from == ElementKind::I8 ||
      from == ElementKind::I1)
    return fromCompute(toFloat(value, builder.getF32Type()), to); // exact in f32 for the narrow ones
  Expr wide = from == ElementKind::I64 ? toFloatWithSticky(value) : toFloat(value, builder.getF64Type());
  return fromCompute(narrowToOdd(wide), to);
}

/// Truncates and saturates; NaN becomes 0. The conversion itself only ever sees what fits.
static Expr floatToInt(Expr value, ElementKind to) {
  Builder &builder = value.builder();
  int bits = 8 * bytesOf(to);
  int64_t least = to == ElementKind::UI8 ? 0 : bits == 64 ? INT64_MIN : -(int64_t(1) << (bits - 1));
  int64_t most = to == ElementKind::UI8 ? 255 : bits == 64 ? INT64_MAX : (int64_t(1) << (bits - 1)) - 1;
  double limit = to == ElementKind::UI8 ? 256 : std::ldexp(1.0, bits - 1); // the first that is too large
  Expr whole = trunc(value);
  Expr fits = less(whole, value.real(limit)) & lessEqual(value.real(least), whole);
  Type wide = builder.getIntegerType(std::max(bits, 32));
  Expr converted = toInt(select(fits, whole, value.real(0)), wide);
  Expr result = select(lessEqual(value.real(limit), whole), converted.integer(most),
                       select(less(whole, value.real(least)), converted.integer(least), converted));
  return bits < 32 ? narrow(result, builder.getIntegerType(bits)) : result;
}

static Expr floatToFloat(Expr value, ElementKind from, ElementKind to) {
  Builder &builder = value.builder();
  Expr wide = toCompute(value, from);
  if (to == ElementKind::F64)
    return extend(wide, builder.getF64Type());
  if (from == ElementKind::F64)
    return to == ElementKind::F32 ? narrow(wide, builder.getF32Type()) : fromCompute(narrowToOdd(wide), to);
  return fromCompute(wide, to);
}

static Expr intToInt(Expr value, ElementKind from, ElementKind to) {
  Type type = value.builder().getIntegerType(8 * bytesOf(to));
  if (value.bitWidth() == 8 * bytesOf(to))
    return value;
  if (value.bitWidth() > 8 * bytesOf(to))
    return narrow(value, type);
  return isUnsigned(from) ? zeroExtend(value, type) : extend(value, type);
}

Expr castElement(Expr value, ElementKind from, ElementKind to) {
  if (from == to)
    return value;
  if (to == ElementKind::I1) {
    Expr computed = toCompute(value, from);
    return notEqual(computed, computed.real(0));
  }
  if (isFloat(from))
    return isFloat(to) ? floatToFloat(value, from, to) : floatToInt(toCompute(value, from), to);
  return isFloat(to) ? intToFloat(value, from, to) : intToInt(value, from, to);
}

} // namespace gpuc::codegen
