// f32 to the two 16-bit floats and back, bit by bit, so that no compiler or CPU has a say. Rounding is to the
// nearest, ties to even (IEEE 754, roundTiesToEven).
#pragma once

#include <bit>
#include <cstdint>

namespace gpuc {

/// The bits of `value` as bf16 (8 exponent bits, 7 of fraction). NaN stays a (quiet) NaN.
constexpr uint16_t floatToBfloat16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

constexpr float bfloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

/// Exact; a signaling NaN becomes quiet and keeps its other bits.
constexpr float halfToFloat(uint16_t bits) {
  const uint32_t sign = uint32_t{bits} << 16 & 0x80000000, magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) {  // infinity and NaN
    const uint32_t quiet = magnitude > 0x7c00 ? 0x400000 : 0;
    return std::bit_cast<float>(sign | 0x7f800000 | magnitude << 13 | quiet);
  }
  if (magnitude >= 0x400) return std::bit_cast<float>(sign | (magnitude << 13) + (112u << 23));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return sign ? -subnormal : subnormal;
}

/// The bits of `value` as f16 (5 exponent bits, 10 of fraction): infinity from 65520 up, subnormals kept.
constexpr uint16_t floatToHalf(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);   // NaN
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);  // 2^16 and more
  if (magnitude >= 0x38800000) {                                             // 2^-14 and more: normal
    uint32_t rebased = magnitude - (112u << 23);                             // exponent bias 127 to 15
    // A carry out of the fraction raises the exponent, up to infinity: as it should.
    return static_cast<uint16_t>(sign | (rebased + 0xfff + (rebased >> 13 & 1)) >> 13);
  }
  uint32_t exponent = magnitude >> 23;
  if (exponent < 102) return sign;  // below 2^-25: rounds to zero
  uint32_t fraction = (magnitude & 0x7fffff) | 0x800000;
  uint32_t shift = 126 - exponent;  // to units of 2^-24, the smallest subnormal: 14 to 24
  uint32_t kept = fraction >> shift, rest = fraction & ((1u << shift) - 1), tie = 1u << (shift - 1);
  return static_cast<uint16_t>(sign | (kept + (rest > tie || (rest == tie && (kept & 1)) ? 1 : 0)));
}

}  // namespace gpuc
