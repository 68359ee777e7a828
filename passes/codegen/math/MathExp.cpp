//===- MathExp.cpp - exp, expm1, sigmoid, tanh ------------------------------===//
//
// exp(x) = 2^n · exp(r) with n = round(x / ln 2) and |r| <= ln 2 / 2 [Tang 1989; Cody and Waite for ln 2 in
// two parts]. exp(r) is a polynomial: in f32 the minimax one of degree 7 (within 2^-34), or of degree 6
// (within 2^-28) where more is rounded behind it; in f64 Taylor's of degree 13 (truncation below 2^-57).
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/math/Math.h"
#include "passes/codegen/math/MathParts.h"

#include <cmath>
#include <cstdlib>

namespace gpuc::codegen {

namespace {
/// factor · x = n · ln 2 + |factor| · r.
struct Reduced {
  Expr exponent; ///< n, as an integer of x's width.
  Expr rest;     ///< r.
};
} // namespace

/// `factor` is 1, -1 or -2; `bias` is what the caller adds to n before it makes a power of two of it: known
/// here, it takes no code there.
static Reduced reduceByLn2(Expr x, int factor = 1, int bias = 0) {
  bool wide = x.bitWidth() == 64;
  // Adding 1.5 · 2^p leaves no room for a fraction: the sum's low bits are n, rounded to the nearest. With
  // bias and the floats' own bias in the sum its bits, shifted, are 2^(n + bias): LLVM cancels the constants.
  Expr shifter = x.real((wide ? 0x1.8p52 + 1023 : 0x1.8p23 + 127) + bias);
  Expr shifted = fma(x, x.real(factor * 0x1.71547652b82fep0), shifter); // log2(e)
  Expr n = shifted - shifter;
  double high = wide ? 6.93147180369123816490e-01 : 0.693359375;    // few bits, so that n · high is exact
  double low = wide ? 1.90821492927058770002e-10 : -2.12194440e-4f; // ln 2 - high
  int unit = std::abs(factor);
  Expr rest = fma(-n, x.real(low / unit), fma(-n, x.real(high / unit), factor < 0 ? -x : x));
  return {bitsOf(shifted) - bitsOf(shifter), rest};
}

/// Whether exp is the result, or 1 is taken away from it; or something else is computed of it, to which the
/// sixteenth of a last place that the shorter polynomial of f32 may be off makes no difference.
enum class Last { Exp, Further };

/// P of exp(r) = 1 + r + r² · P(r), from its first coefficient on.
static llvm::ArrayRef<double> coefficientsOfRest(Expr r, Last last) {
  static const double taylor[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                                  1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                                  1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  static const double longer[] = {0.5000000067839648,   0.16666665867007366,  0.04166629436466839,
                                  0.008333497341210257, 0.001394470356843437, 0.00019790297919826172};
  static const double shorter[] = {0.4999999343211973, 0.1666652039905423, 0.04166839078555061,
                                   0.008368745107822432, 0.001381454007529121};
  if (r.bitWidth() == 64)
    return taylor;
  return last == Last::Exp ? llvm::ArrayRef(longer) : llvm::ArrayRef(shorter);
}

/// (exp(unit · r) - 1) / unit = r + r² · Σ unit^(k+1) · P[k] · r^k.
static Expr expm1OfRest(Expr r, Last last = Last::Exp, int unit = 1) {
  llvm::SmallVector<double> tail;
  double power = unit;
  for (double coefficient : coefficientsOfRest(r, last))
    tail.push_back(coefficient * power), power *= unit;
  return fma(r * r, horner(r, tail), r);
}

static Expr clamp(Expr x, double low, double high) {
  Expr least = x.real(low), most = x.real(high);
  Expr bounded = select(less(most, x), most, x); // NaN stays; a CPU's minps, then its maxps
  return select(less(bounded, least), least, bounded);
}

Expr emitExp(Expr x) { return emitExpOfSum(x, {}); }

Expr emitExpOfSum(Expr x, Expr correction) {
  bool wide = x.bitWidth() == 64;
  Reduced reduced = reduceByLn2(clamp(x, wide ? -750 : -105, wide ? 710 : 89)); // beyond: 0 and infinity
  Expr fraction = expm1OfRest(correction ? reduced.rest + correction : reduced.rest);
  // In two factors, so that results near overflow and denormals are rounded once.
  Expr half = shiftRightArithmetic(reduced.exponent, 1), scale = powerOfTwo(half);
  return fma(scale, fraction, scale) * powerOfTwo(reduced.exponent - half);
}

/// With this bias exp is a normal number down to where it rounds to 0, and up to exp(40).
static int normalBias(Expr x) { return x.bitWidth() == 64 ? 512 : 64; }

/// 2^normalBias · exp(±x).
static Expr normalExp(Expr x, int sign) {
  int bias = normalBias(x);
  Reduced reduced = reduceByLn2(x, sign, bias);
  Expr scale = powerOfTwo(reduced.exponent + reduced.exponent.integer(bias));
  return fma(scale, expm1OfRest(reduced.rest, Last::Further), scale);
}

/// It is the factor 2^-bias that rounds.
Expr emitExpOfMinus(Expr x) {
  Expr high = x.real(x.bitWidth() == 64 ? 750 : 105); // beyond: 0
  return normalExp(select(less(high, x), high, x), -1) * std::ldexp(1.0, -normalBias(x));
}

/// (exp(x) - 1) / 2 = 2^(n-1) · (exp(r) - 1) + (2^(n-1) - 1/2): near 0, where n = 0, nothing is lost.
static Expr halfOfExpm1(Expr x) {
  Reduced reduced = reduceByLn2(x, 1, -1);
  Expr scale = powerOfTwo(reduced.exponent - reduced.exponent.integer(1));
  return fma(scale, expm1OfRest(reduced.rest), scale - 0.5);
}

Expr emitExpm1(Expr x) {
  bool wide = x.bitWidth() == 64;
  Expr half = halfOfExpm1(clamp(x, wide ? -40 : -20, wide ? 710 : 89)); // beyond: -1 and infinity
  Expr tiny = x.real(wide ? 0x1p-54 : 0x1p-25); // where exp(x) - 1 rounds to x, denormals and -0 included
  return select(less(abs(x), tiny), x, half + half);
}

/// e / (e + 1) of e = exp(x), both times 2^bias: a result that is denormal is rounded by the division alone.
/// Multiplying by a polynomial for the reciprocal takes longer than dividing (docs/numerics.md).
Expr emitSigmoid(Expr x) {
  Expr e = normalExp(clamp(x, x.bitWidth() == 64 ? -750 : -105, 40), 1); // beyond: 0 and 1
  return e / (e + std::ldexp(1.0, normalBias(x)));
}

/// |tanh x| = (1 - e) / (1 + e) with e = exp(-2|x|) = 2^n + 2^(n+1) · (exp(r) - 1) / 2, so that both sums are
/// rounded once. Of a tiny x, even a denormal one, 1 - e is 2|x|.
Expr emitTanh(Expr x) {
  Expr magnitude = abs(x), high = x.real(20); // beyond: 1
  Reduced reduced = reduceByLn2(select(less(high, magnitude), high, magnitude), -2, 1);
  Expr fraction = expm1OfRest(reduced.rest, Last::Exp, 2);
  Expr scale = powerOfTwo(reduced.exponent + reduced.exponent.integer(1)); // 2^(n+1)
  Expr one = x.real(1);
  Expr numerator = fma(-scale, fraction, fma(scale, x.real(-0.5), one));
  Expr denominator = fma(scale, fraction, fma(scale, x.real(0.5), one));
  return copySign(numerator / denominator, x);
}

} // namespace gpuc::codegen
