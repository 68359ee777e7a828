#include "runtime/comm/rank_sum.h"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "runtime/base/half.h"

namespace gpuc {
namespace {

constexpr size_t kBlock = 32;  // totals stay in registers

template <typename T, typename Total, typename Widen = std::identity, typename Round = std::identity>
void sum(size_t elements, std::span<const std::byte* const> parts, std::byte* result, Widen widen = {},
         Round round = {}) {
  T* out = reinterpret_cast<T*>(result);
  for (size_t first = 0; first < elements; first += kBlock) {
    const size_t count = std::min(kBlock, elements - first);
    Total totals[kBlock] = {};
    for (const std::byte* part : parts)
      for (size_t i = 0; i < count; ++i) totals[i] += widen(reinterpret_cast<const T*>(part)[first + i]);
    for (size_t i = 0; i < count; ++i) out[first + i] = static_cast<T>(round(totals[i]));
  }
}

}  // namespace

void sumParts(DataType type, size_t elements, std::span<const std::byte* const> parts, std::byte* result) {
  switch (type) {
    case DataType::f64:
      return sum<double, double>(elements, parts, result);
    case DataType::f32:
      return sum<float, float>(elements, parts, result);
    case DataType::f16:
      return sum<uint16_t, float>(elements, parts, result, halfToFloat, floatToHalf);
    case DataType::bf16:
      return sum<uint16_t, float>(elements, parts, result, bfloat16ToFloat, floatToBfloat16);
    case DataType::i64:
      return sum<uint64_t, uint64_t>(elements, parts, result);
    case DataType::i32:
      return sum<uint32_t, uint32_t>(elements, parts, result);
    case DataType::i8:
    case DataType::ui8:
    case DataType::i1:
      return sum<uint8_t, uint8_t>(elements, parts, result);
  }
}

}  // namespace gpuc
