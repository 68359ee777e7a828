//===- MathLog.cpp - log, log1p ---------------------------------------------===//
//
// x = 2^k · (1 + f); with s = f / (2 + f), log(1 + f) = f - f²/2 + s · (f²/2 + R(s²)), where R approximates
// log((1 + s) / (1 - s)) - 2s over s. Method and minimax coefficients of R: FreeBSD msun, e_log.c and
// e_logf.c (Sun Microsystems 1993, public formulas); k · ln 2 is added in two parts.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/math/Math.h"
#include "passes/codegen/math/MathParts.h"

#include <limits>

namespace gpuc::codegen {

constexpr double infinity = std::numeric_limits<double>::infinity();

Split splitFloat(Expr x) {
  bool wide = x.bitWidth() == 64;
  int64_t mantissaBits = wide ? 52 : 23;
  // Denormals are scaled to normals first.
  Expr denormal = less(x, x.real(wide ? 0x1p-1022 : 0x1p-126));
  Expr bits = bitsOf(select(denormal, x * (wide ? 0x1p54 : 0x1p25), x));
  // Subtracting sqrt(1/2)'s bits makes the exponent field count from there.
  Expr base = bits.integer(wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3);
  Expr k = shiftRightArithmetic(bits - base, mantissaBits);
  Expr mantissa = floatFromBits(bits - shiftLeft(k, mantissaBits));
  Expr shift = select(denormal, k.integer(wide ? -54 : -25), k.integer(0));
  return {toFloat(k + shift, x.elementType()), mantissa - 1};
}

/// k · ln 2 + log(1 + f) + correction, where the correction is below half a unit of f.
static Expr logOfParts(Expr k, Expr f, Expr correction) {
  static const double wideSeries[] = {
      6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
      1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01};
  static const double narrowSeries[] = {0xaaaaaa.0p-24, 0xccce13.0p-25, 0x91e9ee.0p-25, 0xf89e26.0p-26};
  bool wide = f.bitWidth() == 64;
  Expr s = f / (f + 2);
  Expr z = s * s;
  Expr r = z * horner(z, wide ? llvm::ArrayRef(wideSeries) : llvm::ArrayRef(narrowSeries));
  Expr halfSquare = f * f * 0.5;
  Expr high = f.real(wide ? 6.93147180369123816490e-01 : 6.9313812256e-01f);
  Expr low = f.real(wide ? 1.90821492927058770002e-10 : 9.0580006145e-06f);
  Expr small = fma(s, halfSquare + r, fma(k, low, correction));
  return fma(k, high, f - (halfSquare - small));
}

Expr emitLog(Expr x) {
  Split split = splitFloat(x);
  Expr result = logOfParts(split.exponent, split.fraction, x.real(0));
  Expr valid = less(x.real(0), x) & less(x, x.real(infinity));
  // What is left: 0, negative numbers, infinity and NaN.
  Expr special = select(equal(x, x.real(0)), x.real(-infinity),
                        select(less(x, x.real(0)), x.real(std::numeric_limits<double>::quiet_NaN()), x));
  return select(valid, result, special);
}

Expr emitLog1p(Expr x) {
  Expr u = x + 1;
  Split split = splitFloat(u);
  // 1 + x is rounded; what was lost, over u, is the logarithm's error. In the middle 1 + x is not formed at
  // all.
  Expr lost = select(less(u.real(2), u), (x - u) + 1, x - (u - 1));
  Expr middle = less(x.real(-0.29289323), x) & less(x, x.real(0.41421354));
  Expr k = select(middle, x.real(0), split.exponent);
  Expr f = select(middle, x, split.fraction);
  Expr correction = select(middle, x.real(0), lost / u);
  Expr result = logOfParts(k, f, correction);
  Expr valid = less(x.real(-1), x) & less(x, x.real(infinity));
  Expr special = select(equal(x, x.real(-1)), x.real(-infinity),
                        select(less(x, x.real(-1)), x.real(std::numeric_limits<double>::quiet_NaN()), x));
  Expr tiny =
      x.real(x.bitWidth() == 64 ? 0x1p-54 : 0x1p-25); // log1p(x) rounds to x, denormals and -0 included
  return select(less(abs(x), tiny), x, select(valid, result, special));
}

} // namespace gpuc::codegen
