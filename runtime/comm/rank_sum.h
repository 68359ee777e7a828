// The sum over ranks, as Communicator::allReduce defines it.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/base/data_type.h"

namespace gpuc {

/// result[i] = 0 + parts[0][i] + parts[1][i] + …, of `elements` elements. `result` may be one of the parts.
/// Of i1 there is no sum.
void sumParts(DataType type, size_t elements, std::span<const std::byte* const> parts, std::byte* result);

}  // namespace gpuc
