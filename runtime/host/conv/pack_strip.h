// Packing padded images; included by patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/direct.h"
#include "runtime/host/conv/patches.h"

namespace gpuc {
namespace {

/// One packed row: from[0], from[step], … between zeros; `width` elements, of which the first to be taken is
/// `offset`, which may lie before or behind them.
template <typename S>
inline void packRow(const S* from, int64_t width, int64_t offset, int64_t step, Computed<S>* to,
                    int64_t count) {
  int64_t begin = offset < 0 ? (-offset + step - 1) / step : 0;
  int64_t end = width > offset ? (width - offset + step - 1) / step : 0;
  if (begin > count) begin = count;
  if (end > count) end = count;
  if (end <= begin) return zero(to, count);
  zero(to, begin);
  copy(to + begin, from + offset + begin * step, end - begin, step);
  zero(to + end, count - end);
}

template <typename S>
void packStrip(const PackedStrip& p, const S* image, Computed<S>* packed) {
  for (int64_t channel = 0; channel < p.channels; ++channel)
    for (int64_t a = 0; a < p.row_phases; ++a)
      for (int64_t b = 0; b < p.column_phases; ++b)
        for (int64_t r = 0; r < p.rows; ++r, packed += p.row_stride) {
          const int64_t row = (p.first_row + r) * p.row_step + a - p.top;
          if (row < 0 || row >= p.height)
            zero(packed, p.row_stride);
          else
            packRow(image + (channel * p.height + row) * p.width, p.width, b - p.left, p.column_step, packed,
                    p.row_stride);
        }
}

}  // namespace
}  // namespace gpuc
