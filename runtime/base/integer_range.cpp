#include "runtime/base/integer_range.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace gpuc {
namespace {

template <typename T>
T load(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
int64_t firstOutsideOf(const void* data, int64_t count, int64_t range) {
  using Unsigned = std::make_unsigned_t<T>;
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<T>::max());
  if (range <= 0) return count > 0 ? 0 : -1;
  // Compared without a sign, what is negative is too large.
  const auto last = static_cast<Unsigned>(std::min(static_cast<uint64_t>(range - 1), kMost));
  constexpr int64_t kBlock = 512;
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t end = std::min(first + kBlock, count);
    // Without a way out of the loop it is a handful of vector instructions.
    Unsigned most = 0;
    for (int64_t i = first; i < end; ++i) most = std::max(most, load<Unsigned>(data, i));
    if (most <= last) continue;
    for (int64_t i = first; i < end; ++i)
      if (load<Unsigned>(data, i) > last) return i;
  }
  return -1;
}

}  // namespace

int64_t integerAt(const void* data, DataType type, int64_t index) {
  switch (type) {
    case DataType::i64:
      return load<int64_t>(data, index);
    case DataType::i32:
      return load<int32_t>(data, index);
    case DataType::i8:
      return load<int8_t>(data, index);
    default:
      return load<uint8_t>(data, index);
  }
}

int64_t firstOutside(const void* data, DataType type, int64_t count, int64_t range) {
  switch (type) {
    case DataType::i64:
      return firstOutsideOf<int64_t>(data, count, range);
    case DataType::i32:
      return firstOutsideOf<int32_t>(data, count, range);
    case DataType::i8:
      return firstOutsideOf<int8_t>(data, count, range);
    default:
      return firstOutsideOf<uint8_t>(data, count, range);
  }
}

}  // namespace gpuc
