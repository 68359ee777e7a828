// exp and log of vectors; included by score_kernels.cpp alone (see runtime/host/matmul/vector.h). The
// formulas of generated kernels (passes/codegen/math/MathExp.cpp and MathLog.cpp, with their sources), for
// what attention needs of them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "runtime/host/matmul/vector.h"

namespace gpuc {
namespace {

template <typename T>
using Integer = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

template <typename T>
struct IntegersOf {
  typedef Integer<T> Type __attribute__((vector_size(kVectorBytes)));
};
/// As many integers as a vector of T has lanes; what comparisons of those give.
template <typename T>
using Integers = typename IntegersOf<T>::Type;

template <typename T>
constexpr bool kIsWide = sizeof(T) == 8;

/// The number that f32 and f64 write differently.
template <typename T>
constexpr T choose(double wide, float narrow) {
  return kIsWide<T> ? static_cast<T>(wide) : static_cast<T>(narrow);
}

template <typename T>
constexpr T kInfinity = static_cast<T>(__builtin_inf());

/// The larger one; y if x is NaN.
template <typename T>
inline Vector<T> larger(Vector<T> x, Vector<T> y) {
  return x > y ? x : y;
}

/// c[0] + c[1]·x + … + c[kTerms - 1]·x^(kTerms - 1).
template <typename T, int kTerms>
inline Vector<T> horner(Vector<T> x, const double (&c)[kTerms]) {
  Vector<T> sum = splat<T>(static_cast<T>(c[kTerms - 1]));
  for (int i = kTerms - 2; i >= 0; --i) sum = multiplyAdd<T>(sum, x, splat<T>(static_cast<T>(c[i])));
  return sum;
}

/// x · 2^n for a whole number n, rounded once; exponent is n as an integer.
template <typename T>
inline Vector<T> scaleByPowerOfTwo(Vector<T> x, Vector<T> n, Integers<T> exponent) {
#if defined(__AVX512F__)
  if constexpr (kIsWide<T>)
    return (Vector<T>)_mm512_scalef_pd((__m512d)x, (__m512d)n);
  else
    return (Vector<T>)_mm512_scalef_ps((__m512)x, (__m512)n);
#else
  constexpr Integer<T> kBias = kIsWide<T> ? 1023 : 127;
  constexpr int kShift = kIsWide<T> ? 52 : 23;
  // In two factors, so that denormals are rounded once.
  const Integers<T> half = exponent / 2;
  auto power = [](Integers<T> e) { return (Vector<T>)((e + kBias) << kShift); };
  return x * power(half) * power(exponent - half);
#endif
}

/// The least probability, as a part of its row's largest, that is not 0: far below what a sum with that one
/// can tell. Rows that are all but decided would else have cotangents near or below the least normal number,
/// at which the products behind them take ten times as long.
template <typename T>
constexpr T kLeastExponent = choose<T>(-177.4, -44.36f);  // 2^-256, 2^-64

/// exp(x) within 1 ulp; 0 below that, ∞ beyond the largest number, NaN of NaN.
template <typename T>
inline Vector<T> exponential(Vector<T> x) {
  constexpr double kWide[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                              1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                              1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  constexpr double kNarrow[] = {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040};
  constexpr T kShifter = choose<T>(0x1.8p52, 0x1.8p23f);
  constexpr T kHigh = choose<T>(6.93147180369123816490e-01, 0.693359375f);
  constexpr T kLow = choose<T>(1.90821492927058770002e-10, -2.12194440e-4f);
  const Vector<T> least = splat<T>(kLeastExponent<T>), most = splat<T>(choose<T>(710, 89));
  // Scores that are hidden end here, too.
  const Integers<T> vanishes = x < least;
  x = vanishes ? least : x;  // NaN stays
  x = most < x ? most : x;
  // Adding 1.5 · 2^p leaves no room for a fraction: the sum's low bits are n, rounded to the nearest.
  const Vector<T> shifter = splat<T>(kShifter);
  const Vector<T> shifted = multiplyAdd<T>(x, splat<T>(static_cast<T>(0x1.71547652b82fep0)), shifter);
  const Vector<T> n = shifted - shifter;
  Vector<T> r = multiplyAdd<T>(n, splat<T>(-kHigh), x);
  r = multiplyAdd<T>(n, splat<T>(-kLow), r);
  Vector<T> tail;
  if constexpr (kIsWide<T>)
    tail = horner<T>(r, kWide);
  else
    tail = horner<T>(r, kNarrow);
  Vector<T> mantissa = multiplyAdd<T>(r * r, tail, r) + 1;
  mantissa = vanishes ? Vector<T>{} : mantissa;
  return scaleByPowerOfTwo<T>(mantissa, n, (Integers<T>)shifted - (Integers<T>)shifter);
}

/// log(x) of normal positive numbers; ∞ and NaN stay what they are.
template <typename T>
inline Vector<T> logarithm(Vector<T> x) {
  constexpr double kWide[] = {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                              2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                              1.479819860511658591e-01};
  constexpr double kNarrow[] = {0xaaaaaa.0p-24, 0xccce13.0p-25, 0x91e9ee.0p-25, 0xf89e26.0p-26};
  constexpr Integer<T> kRootOfHalf = static_cast<Integer<T>>(kIsWide<T> ? 0x3fe6a09e667f3bcd : 0x3f3504f3);
  constexpr int kShift = kIsWide<T> ? 52 : 23;
  const Integers<T> bits = (Integers<T>)x;
  const Integers<T> exponent = (bits - kRootOfHalf) >> kShift;
  const Vector<T> f = (Vector<T>)(bits - (exponent << kShift)) - 1;
  const Vector<T> k = __builtin_convertvector(exponent, Vector<T>);
  const Vector<T> s = f / (f + 2), z = s * s;
  Vector<T> series;
  if constexpr (kIsWide<T>)
    series = horner<T>(z, kWide);
  else
    series = horner<T>(z, kNarrow);
  const Vector<T> half_square = f * f * static_cast<T>(0.5);
  const Vector<T> low = splat<T>(choose<T>(1.90821492927058770002e-10, 9.0580006145e-06f));
  const Vector<T> high = splat<T>(choose<T>(6.93147180369123816490e-01, 6.9313812256e-01f));
  const Vector<T> small = multiplyAdd<T>(s, half_square + z * series, k * low);
  const Vector<T> result = multiplyAdd<T>(k, high, f - (half_square - small));
  return x < splat<T>(kInfinity<T>) ? result : x;
}

}  // namespace
}  // namespace gpuc
