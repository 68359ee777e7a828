// Enums that are cast to one another, as the plan file's are to the runtime's: a static_assert holds them
// together.
#pragma once

#include <cstddef>
#include <utility>

namespace gpuc {

/// Whether the pairs are all of A, from 0 to `last`, and each is one number: what is added to one enum alone,
/// or in another place, breaks it.
template <typename A, typename B, size_t count>
constexpr bool haveSameNumbers(A last, const std::pair<A, B> (&pairs)[count]) {
  for (size_t i = 0; i < count; ++i)
    if (static_cast<size_t>(pairs[i].first) != i || static_cast<size_t>(pairs[i].second) != i) return false;
  return static_cast<size_t>(last) + 1 == count;
}

}  // namespace gpuc
