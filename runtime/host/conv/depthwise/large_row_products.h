// The gradient of a 5x5 or 7x7 filter by strides of one, padded by half of it, of one plane each, of f32,
// whose rows are longer than a vector: some rows of the filter at a time, whose sums stay in registers. Along
// a row of x each vector is shifted in registers for each column of the filter, and meets as many rows of y
// as they lie. Included by patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/row_products.h"

namespace gpuc {
namespace {

#if defined(__AVX512F__)

/// As multiplyAddLanes, by this instruction: of many the compiler would make sums, and choose lanes later.
inline __attribute__((always_inline)) void addLanes(Vector<float>& sum, Vector<float> a, Vector<float> b,
                                                    LaneMask<float> mask) {
  asm("vfmadd231ps %2, %1, %0%{%3%}" : "+v"(sum) : "v"(a), "v"(b), "Yk"(mask));
}

/// Rows of x, and of y that they meet: of kRows rows of the filter from `tap` on the last one has the first.
template <int kKernel, int kRows>
struct LargeRows {
  static constexpr int kHalf = kKernel / 2;
  Vector<float> sums[kRows][kKernel];
  int64_t columns;
  LaneMask<float> within;        // of a row's last vector
  LaneMask<float> there[kRows];  // all lanes, or none where y has no such row

  /// kLast: lanes behind y's columns, where x may be anything, are left out.
  template <bool kLast, int... kColumn>
  inline __attribute__((always_inline)) void add(Vector<float> before, Vector<float> here,
                                                 Vector<float> behind, const float* y,
                                                 std::integer_sequence<int, kColumn...>) {
    Vector<float> left[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      left[i] = loadLanes<float>(y + (kRows - 1 - i) * columns,
                                 static_cast<LaneMask<float>>(kLast ? there[i] & within : there[i]));
    auto addColumn = [&]<int kBy>(Vector<float>* sum) __attribute__((always_inline)) {
      Vector<float> x = here;
      if constexpr (kBy < 0) x = shiftLanes<kLanes<float> + kBy>(before, here);
      if constexpr (kBy > 0) x = shiftLanes<kBy>(here, behind);
      if constexpr (kLast && kBy < 0) x = (Vector<float>)_mm512_maskz_mov_ps(within, (__m512)x);
#pragma unroll
      for (int i = 0; i < kRows; ++i) addLanes(sum[i * kKernel], left[i], x, there[i]);
    };
    (addColumn.template operator()<kColumn - kHalf>(&sums[0][kColumn]), ...);
  }

  /// One row of x. Lines of what lies behind are asked for.
  template <bool kAsks, bool kTwo>
  inline __attribute__((always_inline)) void addRow(const float* x, const float* y) {
    constexpr auto kColumns = std::make_integer_sequence<int, kKernel>();
    const int64_t last = kTwo ? kLanes<float> : (columns - 1) / kLanes<float> * kLanes<float>;
    Vector<float> before = {}, here = load(x);
    auto ask = [&](int64_t column) __attribute__((always_inline)) {
      if constexpr (!kAsks) return;
      askForLines<1>(x + kProductsAhead<float> + column);
      askForLines<1>(y + kProductsAhead<float> + column);
    };
#pragma clang loop unroll(disable)
    for (int64_t column = 0; column < last; column += kLanes<float>) {
      ask(column);
      const float* next = x + column + kLanes<float>;
      const Vector<float> behind =
          column + kLanes<float> < last ? load(next) : loadLanes<float>(next, within);
      add<false>(before, here, behind, y + column, kColumns);
      before = here, here = behind;
    }
    ask(last);
    add<true>(before, here, Vector<float>{}, y + last, kColumns);
  }
};

/// Of one plane, kRows rows of the filter from `tap` on.
template <int kKernel, int kRows, bool kAsks, bool kTwo>
__attribute__((noinline)) void multiplyTapRows(const PlaneProducts<float>& p, int64_t plane, int64_t tap) {
  const int64_t columns = p.y.columns, begin = p.y.row, end = p.y.row_end;
  LargeRows<kKernel, kRows> rows;
  rows.columns = columns;
  rows.within = lanesWithin<float>(0, columns - (columns - 1) / kLanes<float> * kLanes<float>);
  float* lanes = p.lanes + plane * p.lanes_plane + tap * kKernel * kSumRoom<float>;
#pragma unroll
  for (int t = 0; t < kRows * kKernel; ++t)
    rows.sums[t / kKernel][t % kKernel] = load(lanes + t * kSumRoom<float>);
  // The row of y that the last one of the filter brings to a row of x.
  int64_t window = p.x.row + p.low_row - tap - (kRows - 1);
  const float* x = p.x.data + plane * p.x.plane + p.x.row * columns;
  const float* y = p.y.data + plane * p.y.plane + window * columns;
#pragma clang loop unroll(disable)
  for (int64_t row = p.x.row; row < p.x.row_end; ++row, ++window, x += columns, y += columns) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int64_t at = window + kRows - 1 - i;
      rows.there[i] = static_cast<LaneMask<float>>(at >= begin && at < end ? -1 : 0);
    }
    rows.template addRow<kAsks, kTwo>(x, y);
  }
#pragma unroll
  for (int t = 0; t < kRows * kKernel; ++t)
    store(lanes + t * kSumRoom<float>, rows.sums[t / kKernel][t % kKernel]);
}

template <int kKernel, bool kTwo>
void largeRowProducts(const PlaneProducts<float>& p) {
  constexpr int kRows = 3;
  for (int64_t plane = 0; plane < p.planes; ++plane) {
    multiplyTapRows<kKernel, kRows, true, kTwo>(p, plane, 0);
    if constexpr (kKernel == 7) {
      multiplyTapRows<kKernel, kRows, false, kTwo>(p, plane, kRows);
      multiplyTapRows<kKernel, 1, false, kTwo>(p, plane, 2 * kRows);
    } else {
      multiplyTapRows<kKernel, 2, false, kTwo>(p, plane, kRows);
    }
  }
}

#endif

/// Computes them, if they are such.
template <int kKernel, typename T>
inline bool multipliesLargeRows([[maybe_unused]] const PlaneProducts<T>& p) {
#if defined(__AVX512F__)
  if constexpr (kKernel > 3 && sizeof(T) == 4) {
    if (p.low_column != kKernel / 2 || p.x.columns != p.y.columns || p.y.columns <= kLanes<T>) return false;
    p.y.columns <= 2 * kLanes<T> ? largeRowProducts<kKernel, true>(p) : largeRowProducts<kKernel, false>(p);
    return true;
  }
#endif
  return false;
}

}  // namespace
}  // namespace gpuc
