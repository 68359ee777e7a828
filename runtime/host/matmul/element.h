// The 16-bit floats as they lie in memory, and the type in which each element type is computed.
#pragma once

#include <cstdint>

#include "runtime/base/data_type.h"

namespace gpuc {

/// f16 and bf16 in memory: bits, with no arithmetic of their own (see runtime/base/half.h).
struct Half {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

template <typename T>
struct ComputedAs {
  using Type = T;
};
template <>
struct ComputedAs<Half> {
  using Type = float;
};
template <>
struct ComputedAs<Bfloat16> {
  using Type = float;
};

/// The type of products and sums of T: computedType() of runtime/base/data_type.h.
template <typename T>
using Computed = typename ComputedAs<T>::Type;

/// Whether T is another type in memory than in arithmetic.
template <typename T>
inline constexpr bool kIsWidened = sizeof(T) == 2;

/// visit(S()), S being the type in memory of elements of `type`, a float.
template <typename Visit>
auto withElement(DataType type, Visit visit) {
  switch (type) {
    case DataType::f64:
      return visit(double());
    case DataType::f16:
      return visit(Half());
    case DataType::bf16:
      return visit(Bfloat16());
    default:
      return visit(float());
  }
}

}  // namespace gpuc
