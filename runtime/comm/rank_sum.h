// The sum over ranks, as Communicator::allReduce defines it.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/base/data_type.h"

namespace gpuc {

/// result[i] = 0 + parts[0][i] + parts[1][i] + …, of `elements` elements. `result` may be one of the parts.
/// Of i1 there is no sum.
void sumParts(DataType type, size_t elements, std::span<const std::byte* const> parts, std::byte* result);

/// A sum that is taken in several places, each of which adds its parts to what the one before has: totals,
/// of 16-bit floats in f32. `before` is null in the first place.
void addToTotals(DataType type, size_t elements, const std::byte* before,
                 std::span<const std::byte* const> parts, std::byte* totals);
/// The last place has the result.
void sumFromTotals(DataType type, size_t elements, const std::byte* before,
                   std::span<const std::byte* const> parts, std::byte* result);
/// Bytes of a total.
size_t totalBytes(DataType type);

}  // namespace gpuc
