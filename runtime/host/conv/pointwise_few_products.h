// Products of a pointwise convolution with few results; included by patch_kernels.cpp alone (see
// runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/lanes.h"
#include "runtime/host/conv/patch_kernels.h"

namespace gpuc {
namespace {

/// Asks for lines of the block to come, row after row: memory is quick at whole runs, and the multiply-adds
/// need them column by column.
template <typename T>
class AskedLines {
 public:
  explicit AskedLines(const FewProducts<T>& p)
      : row_(p.next), row_step_(p.source_row), lines_((p.columns + kLanes<T> - 1) / kLanes<T>) {}

  inline __attribute__((always_inline)) void askForOne() {
    __builtin_prefetch(row_ + line_ * kLanes<T>);
    if (++line_ < lines_) return;
    line_ = 0;
    row_ += row_step_;
  }

 private:
  const T* row_;
  int64_t row_step_, lines_, line_ = 0;
};

/// All rows of the result, one vector of columns after another: a row's sum of each in registers.
template <int kRows, typename T>
void fewProducts(const FewProducts<T>& p) {
  AskedLines<T> asked(p);
  for (int64_t column = 0; column < p.columns; column += kLanes<T>) {
    const LaneMask<T> lanes = lanesWithin<T>(0, p.columns - column);
    Vector<T> sums[kRows] = {};
    const T *w = p.w, *source = p.source + column;
    for (int64_t d = 0; d < p.depth; ++d, w += kRows, source += p.source_row) {
      if (p.next) asked.askForOne();
      const Vector<T> right = loadLanes<T>(source, lanes);
      for (int r = 0; r < kRows; ++r) sums[r] = multiplyAdd<T>(splat<T>(w[r]), right, sums[r]);
    }
    T* result = p.result + column;
    for (int r = 0; r < kRows; ++r)
      if (r < p.rows) storeLanes<T>(result + r * p.result_row, sums[r], lanes);
  }
}

/// Of vectors of 64 bytes alone: others have too few registers for it.
template <typename T>
constexpr TypedFewKernels<T> fewKernels() {
  if constexpr (kVectorBytes == 64)
    return {{fewProducts<4, T>, fewProducts<8, T>, fewProducts<12, T>, fewProducts<16, T>}};
  else
    return {};
}

}  // namespace
}  // namespace gpuc
