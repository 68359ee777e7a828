// The element types that gpuc knows. The order is that of the plan file's schema and must stay.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuc {

enum class DataType : uint8_t { f64, f32, f16, bf16, i64, i32, i8, ui8, i1 };

inline constexpr int kDataTypeCount = 9;

/// Bytes of one element. i1 takes a whole byte, 0 or 1.
constexpr int64_t sizeOf(DataType type) {
  constexpr std::array<int64_t, kDataTypeCount> kSizes = {8, 4, 2, 2, 8, 4, 1, 1, 1};
  return kSizes[static_cast<size_t>(type)];
}

/// "f32", "ui8", …: the names that the IR, the tools and their messages use. Ends in a null byte.
constexpr const char* nameOf(DataType type) {
  constexpr std::array<const char*, kDataTypeCount> kNames = {"f64", "f32", "f16", "bf16", "i64",
                                                              "i32", "i8",  "ui8", "i1"};
  return kNames[static_cast<size_t>(type)];
}

/// The type with this name, or none.
constexpr std::optional<DataType> parseDataType(std::string_view name) {
  for (int i = 0; i < kDataTypeCount; ++i)
    if (name == nameOf(static_cast<DataType>(i))) return static_cast<DataType>(i);
  return std::nullopt;
}

constexpr bool isFloat(DataType type) { return type <= DataType::bf16; }

/// The type in which sums and products of a floating-point type are carried: f32 for the 16-bit ones.
constexpr DataType computedType(DataType type) { return sizeOf(type) == 2 ? DataType::f32 : type; }

}  // namespace gpuc
