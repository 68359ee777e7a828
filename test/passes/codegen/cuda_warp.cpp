#include "test/passes/codegen/cuda_warp.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace gpuc::test {
namespace {

/// Exact; f16 by its definition.
float fromBits(uint16_t bits, bool isF16) {
  if (!isF16)
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                    : exponent == 0 ? static_cast<float>(fraction) * 0x1p-24f
                                    : static_cast<float>(1024 + fraction) * 0x1p-24f *
                                          static_cast<float>(1 << (exponent - 1));
  return bits >> 15 ? -magnitude : magnitude;
}

/// To the nearest, ties to even. The numbers of a type without a sign are in the order of their bits, so the
/// largest that is not above `value` and the next one are the two to choose from.
uint16_t toBits(float value, bool isF16) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0, infinity = isF16 ? 0x7C00 : 0x7F80;
  if (std::isnan(value))
    return 0x7FFF;
  const double magnitude = std::fabs(value);
  uint16_t low = 0, high = infinity; // low <= magnitude < high, or all that is to high
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (fromBits(middle, isF16) <= magnitude ? low : high) = middle;
  }
  const double below = fromBits(low, isF16);
  // Infinity stands where the next number would.
  const double above = high == infinity ? (isF16 ? 0x1p16 : 0x1p128) : fromBits(high, isF16);
  const double middle = (below + above) / 2;
  const bool isUp = magnitude > middle || (magnitude == middle && low % 2 == 1);
  return static_cast<uint16_t>(sign | (isUp ? high : low));
}

uint16_t half(uint32_t word, int number) { return static_cast<uint16_t>(number ? word >> 16 : word); }

} // namespace

void WarpExchange::give(WarpInstruction instruction, int lane, const uint32_t *words) {
  switch (instruction) {
  case WarpInstruction::MultiplyBf16:
  case WarpInstruction::MultiplyF16:
    return giveFragments(instruction == WarpInstruction::MultiplyF16, lane, words);
  case WarpInstruction::LoadMatrices:
  case WarpInstruction::LoadTransposed:
    std::memcpy(&rows_[lane], words, sizeof rows_[lane]);
    return;
  case WarpInstruction::RoundToBf16:
  case WarpInstruction::RoundToF16:
  case WarpInstruction::PowerOfTwo:
  case WarpInstruction::CopyAhead:
  case WarpInstruction::AwaitCopies:
    return;
  }
}

void WarpExchange::take(WarpInstruction instruction, int lane, uint32_t *words) const {
  switch (instruction) {
  case WarpInstruction::MultiplyBf16:
  case WarpInstruction::MultiplyF16:
    return multiply(lane, words);
  case WarpInstruction::LoadMatrices:
  case WarpInstruction::LoadTransposed:
    return loadMatrices(instruction == WarpInstruction::LoadTransposed, lane, words);
  case WarpInstruction::RoundToBf16:
  case WarpInstruction::RoundToF16: {
    // cvt d, a, b: of a packed result a is the upper half.
    const bool isF16 = instruction == WarpInstruction::RoundToF16;
    const float a = std::bit_cast<float>(words[0]), b = std::bit_cast<float>(words[1]);
    words[0] = static_cast<uint32_t>(toBits(a, isF16)) << 16 | toBits(b, isF16);
    return;
  }
  case WarpInstruction::PowerOfTwo: {
    const float power = std::exp2(std::bit_cast<float>(words[0]));
    words[0] = std::bit_cast<uint32_t>(power < std::numeric_limits<float>::min() ? 0.0f : power);
    return;
  }
  case WarpInstruction::CopyAhead:
  case WarpInstruction::AwaitCopies:
    return;
  }
}

// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type":
//
//   groupID = %laneid >> 2, threadID_in_group = %laneid % 4
//   A: row = groupID for ai where 0 <= i < 2 || 4 <= i < 6, groupID + 8 otherwise
//      col = threadID_in_group * 2 + (i & 1) for ai where i < 4, + 8 where i >= 4
//   B: row = threadID_in_group * 2 + (i & 1) for bi where i < 2, + 8 where i >= 2
//      col = groupID
//   C: row = groupID for ci where i < 2, groupID + 8 where i >= 2
//      col = threadID_in_group * 2 + (i & 1)
//
// A is four registers of two elements each, the first one low; B is two; C and the result are four floats.

void WarpExchange::giveFragments(bool isF16, int lane, const uint32_t *words) {
  const int groupID = lane >> 2, threadID_in_group = lane % 4;
  for (int i = 0; i < 8; ++i) {
    const int row = (0 <= i && i < 2) || (4 <= i && i < 6) ? groupID : groupID + 8;
    const int col = threadID_in_group * 2 + (i & 1) + (i < 4 ? 0 : 8);
    a_[row][col] = fromBits(half(words[i / 2], i % 2), isF16);
  }
  for (int i = 0; i < 4; ++i) {
    const int row = threadID_in_group * 2 + (i & 1) + (i < 2 ? 0 : 8);
    b_[row][groupID] = fromBits(half(words[4 + i / 2], i % 2), isF16);
  }
}

void WarpExchange::multiply(int lane, uint32_t *words) const {
  const int groupID = lane >> 2, threadID_in_group = lane % 4;
  for (int i = 0; i < 4; ++i) {
    const int row = i < 2 ? groupID : groupID + 8, col = threadID_in_group * 2 + (i & 1);
    float sum = std::bit_cast<float>(words[6 + i]);
    for (int k = 0; k < 16; ++k)
      sum += a_[row][k] * b_[k][col];
    words[i] = std::bit_cast<uint32_t>(sum);
  }
}

// PTX ISA, "ldmatrix": threads 0 to 7 give the addresses of the rows of the first matrix, 8 to 15 of the
// second, and so on, each a multiple of 16 bytes. Of each matrix thread i holds in its register the elements
// 2 · (i mod 4) and the next of row i / 4; with .trans, of the matrix transposed.

void WarpExchange::loadMatrices(bool transposed, int lane, uint32_t *words) const {
  for (int matrix = 0; matrix < 4; ++matrix) {
    uint32_t word = 0;
    for (int number = 0; number < 2; ++number) {
      int row = lane / 4, column = lane % 4 * 2 + number;
      if (transposed) {
        const int other = row;
        row = column, column = other;
      }
      const uint16_t *elements = rows_[matrix * 8 + row];
      word |= static_cast<uint32_t>(elements[column]) << 16 * number;
    }
    words[matrix] = word;
  }
  for (const uint16_t *row : rows_)
    if (reinterpret_cast<uintptr_t>(row) % 16 != 0)
      words[0] = 0x7FFF7FFF; // a fault on a GPU
}

} // namespace gpuc::test
