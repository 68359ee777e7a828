//===- MathErf.cpp - The error function -------------------------------------===//
//
// f64: the four ranges, formulas and coefficients of FreeBSD msun, s_erf.c (Sun Microsystems 1993); every
// lane takes one division and one exp(-z²)·exp(…), whichever range it is in. f32: x + x · P(x²) up to
// 475/512, beyond that 1 - exp(-Q(|x|)), with N. Juffa's minimax coefficients (published 2017).
//
//===----------------------------------------------------------------------===//

#include "passes/codegen/math/Math.h"

using llvm::ArrayRef;

namespace gpuc::codegen {

static Expr erfNarrow(Expr x) {
  static const double inner[] = {1.28379166e-1f,  -3.76125336e-1f, 1.12819925e-1f,
                                 -2.67681349e-2f, 4.99119423e-3f,  -5.96761703e-4f};
  static const double outer[] = {-1.28717512e-1f, -6.34846687e-1f, -1.06777877e-1f, 2.42546219e-2f,
                                 -3.88396438e-3f, 3.83197126e-4f,  -1.72853470e-5f};
  Expr t = abs(x), square = x * x;
  Expr near = fma(horner(square, inner), x, x);
  Expr bounded = select(less(t.real(4), t), t.real(4), t);        // erf(4) rounds to 1
  Expr exponent = fma(horner(bounded, outer), bounded, -bounded); // 0 at most
  Expr far = copySign(1.0 - emitExpOfMinus(-exponent), x);
  return select(less(t.real(475.0 / 512), t), far, near);
}

namespace {
/// P(s) / Q(s), of which Q begins with 1.
struct Rational {
  std::initializer_list<double> numerator, denominator;
};
} // namespace

static const Rational upTo0_84{
    {1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
     -5.77027029648944159157e-03, -2.37630166566501626084e-05},
    {1, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
     1.32494738004321644526e-04, -3.96022827877536812320e-06}};
static const Rational upTo1_25{
    {-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
     3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
     -2.16637559486879084300e-03},
    {1, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
     1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02}};
static const Rational upTo2_86{
    {-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e+01,
     -6.23753324503260060396e+01, -1.62396669462573470355e+02, -1.84605092906711035994e+02,
     -8.12874355063065934246e+01, -9.81432934416914548592e+00},
    {1, 1.96512716674392571292e+01, 1.37657754143519042600e+02, 4.34565877475229228821e+02,
     6.45387271733267880336e+02, 4.29008140027567833386e+02, 1.08635005541779435134e+02,
     6.57024977031928170135e+00, -6.04244152148580987438e-02}};
static const Rational upTo6{
    {-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e+01,
     -1.60636384855821916062e+02, -6.37566443368389627722e+02, -1.02509513161107724954e+03,
     -4.83519191608651397019e+02},
    {1, 3.03380607434824582924e+01, 3.25792512996573918826e+02, 1.53672958608443695994e+03,
     3.19985821950859553908e+03, 2.55305040643316442583e+03, 4.74528541206955367215e+02,
     -2.24409524465858183362e+01}};

static Expr erfWide(Expr x) {
  Expr t = abs(x);
  Expr small = less(t, x.real(0.84375)), middle = less(t, x.real(1.25)), upper = less(t, x.real(1 / 0.35));
  auto choose = [&](Expr a, Expr b, Expr c, Expr d) {
    return select(small, a, select(middle, b, select(upper, c, d)));
  };
  Expr tailVariable = 1.0 / (t * t);
  Expr variable = choose(t * t, t - 1, tailVariable, tailVariable);
  auto evaluate = [&](std::initializer_list<double> Rational::*part) {
    auto polynomial = [&](const Rational &rational) {
      return horner(variable, ArrayRef<double>(rational.*part));
    };
    return choose(polynomial(upTo0_84), polynomial(upTo1_25), polynomial(upTo2_86), polynomial(upTo6));
  };
  Expr ratio = evaluate(&Rational::numerator) / evaluate(&Rational::denominator);
  // exp(-t²) with t² in two parts: z has few bits, so that z · z is exact.
  Expr z = floatFromBits(bitsOf(t) & bitsOf(t).integer(~int64_t(0xffffffff)));
  Expr tail = emitExp(fma(-z, z, z.real(-0.5625))) * emitExp(fma(z - t, z + t, ratio)) / t;
  Expr beyond = 1.0 - tail;
  Expr magnitude = choose(fma(t, ratio, t), ratio + 8.45062911510467529297e-01, beyond, beyond);
  magnitude = select(less(t.real(6), t), t.real(1), magnitude);
  return copySign(magnitude, x);
}

Expr emitErf(Expr x) { return x.bitWidth() == 64 ? erfWide(x) : erfNarrow(x); }

} // namespace gpuc::codegen
