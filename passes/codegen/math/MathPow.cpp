//===- MathPow.cpp - Powers -------------------------------------------------===//
//
// |x|^y = exp(y · log |x|), then the sign and the exceptions of C's pow. f32 does this in f64 and rounds
// once. f64 needs the logarithm to some 66 bits, as its error is multiplied by up to 710: it is carried as a
// sum of two numbers [Dekker 1971], from log((1 + s) / (1 - s)) = 2s · (1 + s²/3 + s⁴/5 + …) with s = (m - 1)
// / (m + 1); the terms from s⁴/5 on need one number only, and are the series itself up to s^22.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/math/Math.h"
#include "passes/codegen/math/MathParts.h"

#include <limits>

using namespace mlir;

namespace gpuc::codegen {

namespace {
/// high + low, where |low| is at most half a unit in the last place of high.
struct Pair {
  Expr high, low;
};
} // namespace

/// For |a| >= |b|, or a = 0.
static Pair fastSum(Expr a, Expr b) {
  Expr high = a + b;
  return {high, b - (high - a)};
}

static Pair product(Expr a, Expr b) {
  Expr high = a * b;
  return {high, fma(a, b, -high)};
}

static Pair product(Pair a, Pair b) {
  Pair high = product(a.high, b.high);
  return fastSum(high.high, fma(a.high, b.low, fma(a.low, b.high, high.low)));
}

/// log(x) for positive finite x.
static Pair accurateLog(Expr x) {
  static const double series[] = {1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                                  1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
  Split split = splitFloat(x);
  Expr f = split.fraction; // m - 1, exact
  Pair denominator = fastSum(f.real(2), f);
  Expr sHigh = f / denominator.high;
  Expr sRest = fma(-sHigh, denominator.low, fma(-sHigh, denominator.high, f));
  Pair s = fastSum(sHigh, sRest / denominator.high);
  Pair z = product(s, s);
  Pair inner = fastSum(f.real(0x1.5555555555555p-2), z.high * horner(z.high, series));
  inner.low = inner.low + 0x1.5555555555555p-56; // 1/3 has a second part, too
  Pair w = product(z, inner);
  Pair tail = product(s, w);
  Pair fraction = fastSum(s.high, tail.high);
  Expr low = fraction.low + (s.low + tail.low);
  // k · ln 2: the first part of ln 2 has few enough bits for an exact product.
  Expr k = split.exponent;
  Pair sum = fastSum(k * 6.93147180369123816490e-01, fraction.high * 2);
  Expr rest = sum.low + fma(k, k.real(1.90821492927058770002e-10), low * 2);
  return fastSum(sum.high, rest);
}

/// exp(y · log |x|) without exceptions other than those of overflow.
static Expr powerOfMagnitude(Expr magnitude, Expr y) {
  Expr infinity = magnitude.real(std::numeric_limits<double>::infinity());
  Expr regular = less(magnitude.real(0), magnitude) & less(magnitude, infinity);
  Pair log = accurateLog(select(regular, magnitude, magnitude.real(1)));
  Expr limit = select(equal(magnitude, magnitude.real(0)), -infinity, magnitude); // infinity and NaN stay
  Expr high = select(regular, log.high, limit);
  Expr exponent = y * high;
  Expr low = fma(y, log.low, fma(y, high, -exponent));
  Expr moderate = less(abs(exponent), y.real(1000)) & regular;
  return emitExpOfSum(exponent, select(moderate, low, y.real(0)));
}

static Expr powWide(Expr x, Expr y) {
  Expr zero = x.real(0), one = x.real(1);
  Expr magnitude = powerOfMagnitude(abs(x), y);
  Expr isInteger = equal(trunc(y), y), half = y * 0.5;
  Expr isOdd = isInteger & notEqual(trunc(half), half);
  Expr negative = less(bitsOf(x), bitsOf(x).integer(0)); // -0, too
  Expr result = select(negative & isOdd, -magnitude, magnitude);
  Expr undefined = less(x, zero) & (isInteger ^ isInteger.integer(1)) & equal(y, y);
  Expr infinite = equal(x, x.real(-std::numeric_limits<double>::infinity()));
  undefined = undefined & (infinite ^ infinite.integer(1));
  result = select(undefined, x.real(std::numeric_limits<double>::quiet_NaN()), result);
  Expr yInfinite = equal(abs(y), y.real(std::numeric_limits<double>::infinity()));
  Expr isOne = equal(y, zero) | equal(x, one) | (equal(x, -one) & yInfinite);
  return select(isOne, one, result);
}

Expr emitPow(Expr x, Expr y) {
  if (x.bitWidth() == 64)
    return powWide(x, y);
  Type wide = x.builder().getF64Type();
  return narrow(powWide(extend(x, wide), extend(y, wide)), x.elementType());
}

} // namespace gpuc::codegen
