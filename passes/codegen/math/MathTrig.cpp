//===- MathTrig.cpp - sin, cos, tan -----------------------------------------===//
//
// x = n · pi/2 + r with pi/2 in three parts of 53 bits and fused multiply-adds [Cody and Waite 1980]: the
// first difference is exact, the error of r is below 2^-100 + 2^-53 · |r| for |x| <= 2^30. Beyond, where
// neighbouring f32 are 64 and more apart, the result is NaN rather than a number that means nothing. sin and
// cos of r in [-pi/4, pi/4]: minimax polynomials of FreeBSD msun, k_sin.c and k_cos.c (Sun Microsystems
// 1993). f32 is computed in f64 and rounded once.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/math/Math.h"

#include <limits>

using namespace mlir;

namespace gpuc::codegen {

static const double sinSeries[] = {-1.66666666666666324348e-01, 8.33333333332248946124e-03,
                                   -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                                   -2.50507602534068634195e-08, 1.58969099521155010221e-10};
static const double cosSeries[] = {4.16666666666666019037e-02, -1.38888888888741095749e-03,
                                   2.48015872894767294178e-05, -2.75573143513906633035e-07,
                                   2.08757232129817482790e-09, -1.13596475577881948265e-11};

namespace {
struct Quarter {
  Expr number;       ///< n, as an integer.
  Expr sine, cosine; ///< Of r.
};
} // namespace

static Quarter reduceToQuarter(Expr x) {
  Expr shifter = x.real(0x1.8p52); // leaves no room for a fraction: the sum's low bits are n
  Expr shifted = fma(x, x.real(0x1.45f306dc9c883p-1), shifter); // 2 / pi
  Expr n = shifted - shifter;
  Expr r = fma(-n, x.real(0x1.921fb54442d18p0), x);
  r = fma(-n, x.real(0x1.1a62633145c07p-54), r);
  r = fma(-n, x.real(-0x1.f1976b7ed8fbcp-110), r);
  Expr z = r * r;
  Expr sine = fma(z * r, horner(z, sinSeries), r);
  Expr half = z * 0.5, w = 1.0 - half;
  Expr cosine = w + fma(z * z, horner(z, cosSeries), (1.0 - w) - half);
  return {bitsOf(shifted), sine, cosine};
}

static Expr isOdd(Expr n, int64_t bit) { return notEqual(n & n.integer(bit), n.integer(0)); }

/// `function` on f64, for f32 through it; NaN out of range; x itself where the result rounds to it.
static Expr evaluate(Expr x, bool tinyIsItself, llvm::function_ref<Expr(Quarter)> function) {
  bool wide = x.bitWidth() == 64;
  Expr argument = wide ? x : extend(x, x.builder().getF64Type());
  Expr inRange = lessEqual(abs(argument), argument.real(0x1p30));
  Expr result = function(reduceToQuarter(select(inRange, argument, argument.real(0))));
  result = select(inRange, result, result.real(std::numeric_limits<double>::quiet_NaN()));
  if (!wide)
    result = narrow(result, x.elementType());
  return tinyIsItself ? select(less(abs(x), x.real(wide ? 0x1p-27 : 0x1p-13)), x, result) : result;
}

Expr emitSin(Expr x) {
  return evaluate(x, true, [](Quarter q) {
    Expr magnitude = select(isOdd(q.number, 1), q.cosine, q.sine);
    return select(isOdd(q.number, 2), -magnitude, magnitude);
  });
}

Expr emitCos(Expr x) {
  return evaluate(x, false, [](Quarter q) {
    Expr magnitude = select(isOdd(q.number, 1), q.sine, q.cosine);
    return select(isOdd(q.number + q.number.integer(1), 2), -magnitude, magnitude);
  });
}

Expr emitTan(Expr x) {
  return evaluate(x, true, [](Quarter q) {
    Expr odd = isOdd(q.number, 1);
    return select(odd, -q.cosine, q.sine) / select(odd, q.sine, q.cosine);
  });
}

} // namespace gpuc::codegen
