// What a tensor is called, holds and measures, without its data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/data_type.h"

namespace gpuc {

struct TensorSpec {
  std::string name;
  DataType type = DataType::f32;
  std::vector<int64_t> shape;  // empty: a scalar

  /// The product of the extents; 1 for a scalar. The caller has made sure that it fits into 64 bits
  /// (readers of files do, see checkedElementCount).
  int64_t elementCount() const {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    return count;
  }

  int64_t sizeBytes() const { return elementCount() * sizeOf(type); }

  /// "64x784xf32"; "f32" for a scalar.
  std::string str() const {
    std::string text;
    for (int64_t extent : shape) text += std::to_string(extent) + "x";
    return text + nameOf(type);
  }
};

/// The number of elements of a shape that comes from outside. False if an extent is negative or if the
/// bytes of any element type (at most 8 each) would not fit into an int64_t.
inline bool checkedElementCount(const std::vector<int64_t>& shape, int64_t& count) {
  constexpr int64_t kMostElements = INT64_MAX / 8;
  count = 1;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0) return false;
    if (extent == 0) empty = true;
    // The non-zero extents alone must fit: [2^62, 2^62, 0] is no honest shape.
    int64_t factor = extent == 0 ? 1 : extent;
    if (count > kMostElements / factor) return false;
    count *= factor;
  }
  if (empty) count = 0;
  return true;
}

}  // namespace gpuc
