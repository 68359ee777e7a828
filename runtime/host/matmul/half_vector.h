// Vectors of 16-bit floats to vectors of f32 and back; included by vector_kernels.cpp and its like alone
// (see vector.h).
//
// Every CPU gives the same bits: those of runtime/base/half.h, but that a NaN keeps the upper bits of its
// payload, as the CPUs' own instructions for f16 have it. Those for bf16 drop denormals and are not used.
#pragma once

#include "runtime/host/matmul/element.h"
#include "runtime/host/matmul/vector.h"

namespace gpuc {
namespace {

/// As many 16-bit and 32-bit words as a vector has f32.
typedef uint16_t HalfBits __attribute__((vector_size(kVectorBytes / 2)));
typedef uint32_t FloatBits __attribute__((vector_size(kVectorBytes)));

/// f16 to f32: moved into place, the number is 2^112 times too small, subnormal or not; infinity and NaN
/// want the largest exponent. W is FloatBits, or uint32_t for one element; F the same of floats.
template <typename W, typename F>
inline W bitsOfHalf(W half) {
  const W magnitude = half & 0x7fff;
  const F scaled = __builtin_bit_cast(F, magnitude << 13) * 0x1p112f;
  const W special = magnitude >= 0x7c00 ? W{} + 0x7f800000 : W{};
  const W quiet = magnitude > 0x7c00 ? W{} + 0x400000 : W{};
  return (half & 0x8000) << 16 | __builtin_bit_cast(W, scaled) | special | quiet;
}

template <typename S>
inline Vector<float> widen(HalfBits bits);

template <>
inline Vector<float> widen<Bfloat16>(HalfBits bits) {
  return (Vector<float>)(__builtin_convertvector(bits, FloatBits) << 16);
}

template <>
inline Vector<float> widen<Half>(HalfBits bits) {
#if defined(__AVX512F__)
  return (Vector<float>)_mm512_cvtph_ps((__m256i)bits);
#elif defined(__F16C__)
  return (Vector<float>)_mm256_cvtph_ps((__m128i)bits);
#else
  return (Vector<float>)bitsOfHalf<FloatBits, Vector<float> >(__builtin_convertvector(bits, FloatBits));
#endif
}

/// One element; the identity for what is computed as it is stored.
template <typename T>
inline T widenOne(T value) {
  return value;
}
inline float widenOne(Bfloat16 value) { return __builtin_bit_cast(float, uint32_t{value.bits} << 16); }
inline float widenOne(Half value) {
  return __builtin_bit_cast(float, bitsOfHalf<uint32_t, float>(value.bits));
}

template <typename S>
inline HalfBits narrow(Vector<float> values);

template <>
inline HalfBits narrow<Bfloat16>(Vector<float> values) {
  const FloatBits bits = (FloatBits)values;
  const FloatBits nan = bits >> 16 | 0x40;
  const FloatBits rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return __builtin_convertvector((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded, HalfBits);
}

template <>
inline HalfBits narrow<Half>(Vector<float> values) {
#if defined(__AVX512F__)
  return (HalfBits)_mm512_cvtps_ph((__m512)values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__F16C__)
  return (HalfBits)_mm256_cvtps_ph((__m256)values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
  const FloatBits bits = (FloatBits)values, magnitude = bits & 0x7fffffff;
  const FloatBits rebased = magnitude - (112u << 23);  // exponent bias 127 to 15
  const FloatBits normal = (rebased + 0xfff + (rebased >> 13 & 1)) >> 13;
  // Added to 1/2, of which the last bit is 2^-24, f16's smallest subnormal, the sum is rounded as f16 is.
  const FloatBits subnormal = (FloatBits)((Vector<float>)magnitude + 0.5f) - 0x3f000000;
  const FloatBits nan = (magnitude >> 13 & 0x3ff) | 0x7e00;
  FloatBits half = magnitude < 0x38800000 ? subnormal : normal;
  half = magnitude >= 0x47800000 ? FloatBits{} + 0x7c00 : half;
  half = magnitude > 0x7f800000 ? nan : half;
  return __builtin_convertvector((bits >> 16 & 0x8000) | half, HalfBits);
#endif
}

}  // namespace
}  // namespace gpuc
