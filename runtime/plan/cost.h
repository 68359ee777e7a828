// What commands cost: floating-point operations, a fused multiply-add being two. The compiler's dialect asks;
// a kernel's are those of its ops, and bytes are those of the operands (roles.h).
#pragma once

#include <cstdint>

namespace gpuc {

/// `following` are the operations on each element behind the product.
constexpr int64_t flopsOfMatmul(int64_t batch, int64_t m, int64_t n, int64_t k, int64_t following) {
  return batch * m * n * (2 * k + following);
}

/// Of each of the three kinds: as many as if none of the taps fell on padding. `taps` are those of one
/// output channel, `following` the operations on each of the `results`.
constexpr int64_t flopsOfConv(int64_t outputs, int64_t taps, int64_t results, int64_t following) {
  return 2 * outputs * taps + following * results;
}

/// As if no key were masked: two products forward, five for the gradient, and 7 for the softmax of each of
/// the `scores`.
constexpr int64_t flopsOfAttention(bool is_gradient, int64_t scores, int64_t width, int64_t value_width) {
  const int64_t products = is_gradient ? 3 * width + 2 * value_width : width + value_width;
  return scores * (2 * products + 7);
}

}  // namespace gpuc
