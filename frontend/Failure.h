//===- Failure.h - What is returned after an error --------------------------===//
#pragma once

#include <optional>
#include <type_traits>
#include <vector>

namespace gpuc {

/// Whether a default value of this type says that there is none: false, an empty list of such, nothing. A
/// type of a frontend that is so too says it beside its definition.
template <typename Value> inline constexpr bool kEmptyIsFailure = std::is_same_v<Value, bool>;
template <typename Value> inline constexpr bool kEmptyIsFailure<std::optional<Value>> = true;
template <typename Value> inline constexpr bool kEmptyIsFailure<std::vector<Value>> = kEmptyIsFailure<Value>;

/// What a function returns whose work has failed, where the reason is kept.
struct Failure {
  template <typename Value>
    requires kEmptyIsFailure<Value>
  operator Value() const {
    return Value();
  }
};

} // namespace gpuc
