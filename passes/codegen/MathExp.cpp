//===- MathExp.cpp - exp, expm1, sigmoid, tanh ------------------------------===//
//
// exp(x) = 2^n · exp(r) with n = round(x / ln 2) and |r| <= ln 2 / 2 [Tang 1989; Cody and Waite for ln 2 in
// two parts]. exp(r) is its Taylor polynomial: in f32 of degree 8 (truncation below 2^-30), in f64 of degree
// 13 (below 2^-57).
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/Math.h"
#include "passes/codegen/MathParts.h"

#include <cmath>

namespace gpuc::codegen {

namespace {
/// n and r of x = n · ln 2 + r.
struct Reduced {
  Expr exponent;     ///< n, as an integer of x's width.
  Expr exponentReal; ///< n, as a float.
  Expr rest;         ///< r.
};
} // namespace

static Reduced reduceByLn2(Expr x) {
  bool wide = x.bitWidth() == 64;
  // Adding 1.5 · 2^p leaves no room for a fraction: the sum's low bits are n, rounded to the nearest.
  Expr shifter = x.real(wide ? 0x1.8p52 : 0x1.8p23f);
  Expr shifted = fma(x, x.real(0x1.71547652b82fep0), shifter); // log2(e)
  Expr n = shifted - shifter;
  Expr high = x.real(wide ? 6.93147180369123816490e-01 : 0.693359375); // few bits, so that n · high is exact
  Expr low = x.real(wide ? 1.90821492927058770002e-10 : -2.12194440e-4f); // ln 2 - high
  Expr rest = fma(-n, low, fma(-n, high, x));
  return {bitsOf(shifted) - bitsOf(shifter), n, rest};
}

/// (exp(r) - 1 - r) / r².
static Expr expTail(Expr r) {
  static const double inverseFactorials[] = {
      1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,      1.0 / 720,       1.0 / 5040,
      1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  size_t terms = r.bitWidth() == 64 ? 12 : 7;
  return horner(r, llvm::ArrayRef(inverseFactorials).take_front(terms));
}

static Expr expOfRest(Expr r) { return fma(r * r, expTail(r), r) + 1; }

Expr emitExp(Expr x) { return emitExpOfSum(x, {}); }

Expr emitExpOfSum(Expr x, Expr correction) {
  bool wide = x.bitWidth() == 64;
  Expr low = x.real(wide ? -750 : -105), high = x.real(wide ? 710 : 89); // beyond: 0 and infinity
  Expr clamped = select(less(x, low), low, select(less(high, x), high, x));
  Reduced reduced = reduceByLn2(clamped);
  Expr mantissa = expOfRest(correction ? reduced.rest + correction : reduced.rest);
  // In two factors, so that results near overflow and denormals are rounded once.
  Expr half = shiftRightArithmetic(reduced.exponent, 1);
  return mantissa * powerOfTwo(half) * powerOfTwo(reduced.exponent - half);
}

/// With n <= 0, 2^(n + bias) is normal whatever n is, and the factor 2^-bias is the one that rounds.
Expr emitExpOfMinus(Expr x) {
  bool wide = x.bitWidth() == 64;
  int bias = wide ? 512 : 64;
  Expr high = x.real(wide ? 750 : 105); // beyond: 0
  Reduced reduced = reduceByLn2(-select(less(high, x), high, x));
  Expr scale = powerOfTwo(reduced.exponent + reduced.exponent.integer(bias));
  return expOfRest(reduced.rest) * scale * x.real(std::ldexp(1.0, -bias));
}

/// (exp(x) - 1) / 2 = 2^(n-1) · (exp(r) - 1) + (2^(n-1) - 1/2): near 0, where n = 0, nothing is lost.
static Expr halfOfExpm1(Expr x) {
  Reduced reduced = reduceByLn2(x);
  Expr r = reduced.rest;
  Expr fraction = fma(r * r, expTail(r), r); // exp(r) - 1
  Expr scale = powerOfTwo(reduced.exponent - reduced.exponent.integer(1));
  return fma(scale, fraction, scale - 0.5);
}

/// Beyond it expm1 is infinite.
static Expr greatestForExpm1(Expr x) { return x.real(x.bitWidth() == 64 ? 710 : 89); }

Expr emitExpm1(Expr x) {
  bool wide = x.bitWidth() == 64;
  Expr low = x.real(wide ? -40 : -20), high = greatestForExpm1(x); // below: -1
  Expr half = halfOfExpm1(select(less(x, low), low, select(less(high, x), high, x)));
  Expr tiny = x.real(wide ? 0x1p-54 : 0x1p-25); // where exp(x) - 1 rounds to x, denormals and -0 included
  return select(less(abs(x), tiny), x, half + half);
}

/// exp of what is negative cannot overflow: e = exp(-|x|), then 1 / (1 + e) or e / (1 + e).
Expr emitSigmoid(Expr x) {
  Expr e = emitExpOfMinus(abs(x));
  Expr numerator = select(less(x, x.real(0)), e, x.real(1));
  return numerator / (e + 1);
}

/// With h = expm1(2|x|) / 2: |tanh x| = h / (h + 1), or, where that would amplify h's error, 1 - 1 / (h + 1).
/// Of a tiny x, even a denormal one, h is |x|: half of an even number is exact.
Expr emitTanh(Expr x) {
  Expr magnitude = abs(x), twice = magnitude + magnitude, high = greatestForExpm1(x);
  Expr large = less(x.real(0.7), magnitude);
  Expr half = halfOfExpm1(select(less(high, twice), high, twice));
  Expr quotient = select(large, x.real(1), half) / (half + 1);
  return copySign(select(large, 1.0 - quotient, quotient), x);
}

} // namespace gpuc::codegen
