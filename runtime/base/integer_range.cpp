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
int64_t firstOutsideOf(const void* data, int64_t count, int64_t range, int64_t ignored) {
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
      if (load<Unsigned>(data, i) > last && static_cast<int64_t>(load<T>(data, i)) != ignored) return i;
  }
  return -1;
}

/// Calls `call` with an integer of the type; i1 is a byte.
template <typename Call>
auto withInteger(DataType type, Call call) {
  switch (type) {
    case DataType::i64:
      return call(int64_t{});
    case DataType::i32:
      return call(int32_t{});
    case DataType::i8:
      return call(int8_t{});
    default:
      return call(uint8_t{});
  }
}

}  // namespace

int64_t integerAt(const void* data, DataType type, int64_t index) {
  return withInteger(type, [&](auto integer) { return int64_t{load<decltype(integer)>(data, index)}; });
}

void storeInteger(void* data, DataType type, int64_t index, int64_t value) {
  withInteger(type, [&](auto integer) {
    integer = static_cast<decltype(integer)>(value);
    std::memcpy(static_cast<char*>(data) + index * static_cast<int64_t>(sizeof(integer)), &integer,
                sizeof(integer));
  });
}

bool fitsInto(DataType type, int64_t value) {
  return withInteger(type, [&](auto integer) {
    using Limits = std::numeric_limits<decltype(integer)>;
    return value >= int64_t{Limits::min()} && value <= int64_t{Limits::max()};
  });
}

int64_t firstOutside(const void* data, DataType type, int64_t count, int64_t range, int64_t ignored) {
  return withInteger(
      type, [&](auto integer) { return firstOutsideOf<decltype(integer)>(data, count, range, ignored); });
}

}  // namespace gpuc
