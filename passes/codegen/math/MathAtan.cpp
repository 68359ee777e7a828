//===- MathAtan.cpp - Arc tangent -------------------------------------------===//
//
// |x| is taken to a small t by one of atan(x) = atan(c) + atan((x - c) / (1 + c·x)), c in {0, 1/2, 1, 3/2,
// infinity}, and atan(t) = t - t³ · P(t²). Ranges and minimax coefficients: FreeBSD msun, s_atan.c and
// s_atanf.c (Sun Microsystems 1993); atan(c) stands in two parts.
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/math/Math.h"

using llvm::ArrayRef;

namespace gpuc::codegen {

static const double wideSeries[] = {
    3.33333333333329318027e-01,  -1.99999999998764832476e-01, 1.42857142725034663711e-01,
    -1.11111104054623557880e-01, 9.09088713343650656196e-02,  -7.69187620504482999495e-02,
    6.66107313738753120669e-02,  -5.83357013379057348645e-02, 4.97687799461593236017e-02,
    -3.65315727442169155270e-02, 1.62858201153657823623e-02};
static const double narrowSeries[] = {3.3333328366e-01f, -1.9999158382e-01f, 1.4253635705e-01f,
                                      -1.0648017377e-01f, 6.1687607318e-02f};
// atan of 1/2, 1, 3/2 and infinity, each as high + low.
static const double wideHigh[] = {4.63647609000806093515e-01, 7.85398163397448278999e-01,
                                  9.82793723247329054082e-01, 1.57079632679489655800e+00};
static const double wideLow[] = {2.26987774529616870924e-17, 3.06161699786838301793e-17,
                                 1.39033110312309984516e-17, 6.12323399573676603587e-17};
static const double narrowHigh[] = {4.6364760399e-01f, 7.8539812565e-01f, 9.8279368877e-01f,
                                    1.5707962513e+00f};
static const double narrowLow[] = {5.0121582440e-09f, 3.7748947079e-08f, 3.4473217170e-08f,
                                   7.5497894159e-08f};

Expr emitAtan(Expr x) {
  bool wide = x.bitWidth() == 64;
  Expr t = abs(x);
  Expr inRange[] = {less(t, t.real(0.4375)), less(t, t.real(0.6875)), less(t, t.real(1.1875)),
                    less(t, t.real(2.4375))};
  auto choose = [&](std::initializer_list<Expr> values) {
    const Expr *value = values.begin();
    Expr result = value[4];
    for (int range = 3; range >= 0; --range)
      result = select(inRange[range], value[range], result);
    return result;
  };
  auto constants = [&](const double *table) {
    return choose({t.real(0), t.real(table[0]), t.real(table[1]), t.real(table[2]), t.real(table[3])});
  };
  Expr numerator = choose({t, t + t - 1, t - 1, t - 1.5, t.real(-1)});
  Expr denominator = choose({t.real(1), t + 2, t + 1, fma(t, t.real(1.5), t.real(1)), t});
  Expr reduced = numerator / denominator;
  Expr square = reduced * reduced;
  Expr series = square * horner(square, wide ? ArrayRef(wideSeries) : ArrayRef(narrowSeries));
  Expr high = constants(wide ? wideHigh : narrowHigh), low = constants(wide ? wideLow : narrowLow);
  return copySign(high - (fma(reduced, series, -low) - reduced), x);
}

} // namespace gpuc::codegen
