// Numbers that look random, for hashes of search states and for variations that repeat.
#pragma once

#include <cstdint>

namespace gpuc::placement {

/// A number that looks random for each pair (splitmix64's finaliser).
inline uint64_t mix(uint32_t item, uint64_t value) {
  uint64_t x = value * 0x9e3779b97f4a7c15 + item + 1;  // mix(0, 0) would be 0, the mark of an empty place
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// What a variant of a search sees of a property of the item: up to `most` more or less of it.
inline double varied(double property, uint32_t item, uint64_t variant, double most) {
  double share = static_cast<double>(mix(item, variant) >> 11) * 0x1p-53;  // [0, 1)
  return property * (1 - most + 2 * most * share);
}

}  // namespace gpuc::placement
