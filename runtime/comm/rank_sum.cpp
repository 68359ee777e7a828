#include "runtime/comm/rank_sum.h"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "runtime/base/half.h"

namespace gpuc {
namespace {

constexpr size_t kBlock = 32;  // totals stay in registers

/// Where a sum begins, and whether it goes on elsewhere.
struct Ends {
  const std::byte* before = nullptr;
  bool to_totals = false;
};

template <typename T, typename Total, typename Widen = std::identity, typename Round = std::identity>
void sum(size_t elements, Ends ends, std::span<const std::byte* const> parts, std::byte* result,
         Widen widen = {}, Round round = {}) {
  const Total* before = reinterpret_cast<const Total*>(ends.before);
  for (size_t first = 0; first < elements; first += kBlock) {
    const size_t count = std::min(kBlock, elements - first);
    Total totals[kBlock] = {};
    if (before) std::copy_n(before + first, count, totals);
    for (const std::byte* part : parts)
      for (size_t i = 0; i < count; ++i) totals[i] += widen(reinterpret_cast<const T*>(part)[first + i]);
    if (ends.to_totals)
      std::copy_n(totals, count, reinterpret_cast<Total*>(result) + first);
    else
      for (size_t i = 0; i < count; ++i)
        reinterpret_cast<T*>(result)[first + i] = static_cast<T>(round(totals[i]));
  }
}

void sumOf(DataType type, size_t elements, Ends ends, std::span<const std::byte* const> parts,
           std::byte* result) {
  switch (type) {
    case DataType::f64:
      return sum<double, double>(elements, ends, parts, result);
    case DataType::f32:
      return sum<float, float>(elements, ends, parts, result);
    case DataType::f16:
      return sum<uint16_t, float>(elements, ends, parts, result, halfToFloat, floatToHalf);
    case DataType::bf16:
      return sum<uint16_t, float>(elements, ends, parts, result, bfloat16ToFloat, floatToBfloat16);
    case DataType::i64:
      return sum<uint64_t, uint64_t>(elements, ends, parts, result);
    case DataType::i32:
      return sum<uint32_t, uint32_t>(elements, ends, parts, result);
    case DataType::i8:
    case DataType::ui8:
    case DataType::i1:
      return sum<uint8_t, uint8_t>(elements, ends, parts, result);
  }
}

}  // namespace

void sumParts(DataType type, size_t elements, std::span<const std::byte* const> parts, std::byte* result) {
  sumOf(type, elements, {}, parts, result);
}

void addToTotals(DataType type, size_t elements, const std::byte* before,
                 std::span<const std::byte* const> parts, std::byte* totals) {
  sumOf(type, elements, {.before = before, .to_totals = true}, parts, totals);
}

void sumFromTotals(DataType type, size_t elements, const std::byte* before,
                   std::span<const std::byte* const> parts, std::byte* result) {
  sumOf(type, elements, {.before = before}, parts, result);
}

size_t totalBytes(DataType type) {
  return std::max(static_cast<size_t>(sizeOf(type)),
                  type == DataType::f16 || type == DataType::bf16 ? sizeof(float) : size_t{1});
}

}  // namespace gpuc
