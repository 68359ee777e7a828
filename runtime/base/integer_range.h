// Integers that name a class or a token lie in [0, range): whoever takes them from outside asks here.
#pragma once

#include <cstdint>

#include "runtime/base/data_type.h"

namespace gpuc {

/// The value at `index` of integers (or i1) that lie one behind the other.
int64_t integerAt(const void* data, DataType type, int64_t index);

/// The index of the first of `count` integers that lies outside [0, range), or -1. Reads as fast as memory
/// does: it may stand in front of every step.
int64_t firstOutside(const void* data, DataType type, int64_t count, int64_t range);

}  // namespace gpuc
