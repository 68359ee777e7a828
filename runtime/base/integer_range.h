// Integers that name a class or a token lie in [0, range): whoever takes them from outside asks here.
#pragma once

#include <cstdint>

#include "runtime/base/data_type.h"

namespace gpuc {

/// i1 is a truth value, no number.
constexpr bool isInteger(DataType type) { return !isFloat(type) && type != DataType::i1; }

/// The value at `index` of integers (or i1) that lie one behind the other, and another one in its place,
/// which must fit.
int64_t integerAt(const void* data, DataType type, int64_t index);
void storeInteger(void* data, DataType type, int64_t index, int64_t value);
bool fitsInto(DataType type, int64_t value);

/// Whether there is a value that marks what is left out: one outside of [0, range), which 0 is not.
constexpr bool hasIgnored(int64_t range, int64_t ignored) {
  return range >= 0 && (ignored < 0 || ignored >= range);
}

/// The index of the first of `count` integers that lies outside [0, range) and is not `ignored`, or -1. Reads
/// as fast as memory does: it may stand in front of every step.
int64_t firstOutside(const void* data, DataType type, int64_t count, int64_t range, int64_t ignored = 0);

}  // namespace gpuc
