// 3x3 planes of 4x4 pixels, padded by one, of f32: four planes at once, transposed so that a vector has a row
// of each, whose neighbours on either side are a shuffle away. Included by patch_kernels.cpp alone (see
// runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/vector_planes.h"

namespace gpuc {
namespace {

/// What is asked for while four planes are computed: the four that come after the next.
constexpr int64_t kQuadsAhead = 8;

#if defined(__AVX512F__)

/// Four quarters of four vectors, exchanged as the elements of a matrix that is transposed.
inline __attribute__((always_inline)) void transposeQuads(Vector<float> (&v)[4]) {
  auto pick = [](Vector<float> x, Vector<float> y, auto quads) __attribute__((always_inline)) {
    return (Vector<float>)_mm512_shuffle_f32x4((__m512)x, (__m512)y, decltype(quads)::value);
  };
  constexpr std::integral_constant<int, 0x88> kEven;
  constexpr std::integral_constant<int, 0xDD> kOdd;
  const Vector<float> even[2] = {pick(v[0], v[1], kEven), pick(v[2], v[3], kEven)};
  const Vector<float> odd[2] = {pick(v[0], v[1], kOdd), pick(v[2], v[3], kOdd)};
  v[0] = pick(even[0], even[1], kEven), v[2] = pick(even[0], even[1], kOdd);
  v[1] = pick(odd[0], odd[1], kEven), v[3] = pick(odd[0], odd[1], kOdd);
}

/// Rows of four planes, or back. Halves of two planes come together as they are loaded.
inline __attribute__((always_inline)) void loadQuads(const float* from, int64_t plane,
                                                     Vector<float> (&rows)[4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float* at = from + half * 8;
    const Vector<float> low = loadHalves(at, at + plane), high = loadHalves(at + 2 * plane, at + 3 * plane);
    rows[2 * half] = (Vector<float>)_mm512_shuffle_f32x4((__m512)low, (__m512)high, 0x88);
    rows[2 * half + 1] = (Vector<float>)_mm512_shuffle_f32x4((__m512)low, (__m512)high, 0xDD);
  }
  keepInRegisters(rows);
}
inline __attribute__((always_inline)) void storeQuads(float* to, int64_t plane, Vector<float> (&rows)[4]) {
  transposeQuads(rows);
#pragma unroll
  for (int i = 0; i < 4; ++i) store(to + i * plane, rows[i]);
}

/// The elements of each row before those of another, or behind them, and 0 at its end.
struct QuadColumns {
  LaneMask<float> before = 0xEEEE, behind = 0x7777;

  QuadColumns() { keepInRegister<float>(before), keepInRegister<float>(behind); }
  Vector<float> column(Vector<float> row, int j) const {
    if (j == 0) return (Vector<float>)_mm512_maskz_permute_ps(before, (__m512)row, 0x90);
    return j == 1 ? row : (Vector<float>)_mm512_maskz_permute_ps(behind, (__m512)row, 0xF9);
  }
};

/// The taps of four planes, each in its quarter.
template <bool kFlipped, int... kTap>
inline __attribute__((always_inline)) void splatQuads(const PlaneSums<float>& p, int64_t plane,
                                                      Vector<float>* taps,
                                                      std::integer_sequence<int, kTap...>) {
  Vector<float> filters[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    filters[i] = loadLanes<float>(p.filter + (plane + i) * p.filter_plane, lanesWithin<float>(0, 9));
  transposeQuads(filters);
  keepInRegisters(filters);
  ((taps[kFlipped ? 8 - kTap : kTap] =
        (Vector<float>)_mm512_permute_ps((__m512)filters[kTap / 4], kTap % 4 * 0x55)),
   ...);
}

/// Four planes of one image, whose rows are loaded; meanwhile those of the next ones are. Sums of the middle
/// column of the filter are apart, lest each waits for nine multiply-adds of its own.
inline __attribute__((always_inline)) void sumQuadRows(const QuadColumns& columns, const Vector<float>* taps,
                                                       Vector<float> (&rows)[4], const float* next,
                                                       int64_t from_plane, float* to, int64_t to_plane) {
  Vector<float> loaded[4], sums[2][4] = {};
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    if (r == 2) loadQuads(next, from_plane, loaded);
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      const Vector<float> x = columns.column(rows[r], j);
#pragma unroll
      for (int i = 0; i < 3; ++i)
        if (const int w = r + 1 - i; w >= 0 && w < 4)
          sums[j == 1][w] = multiplyAdd<float>(taps[3 * i + j], x, sums[j == 1][w]);
    }
  }
#pragma unroll
  for (int w = 0; w < 4; ++w) sums[0][w] += sums[1][w], rows[w] = loaded[w];
  storeQuads(to, to_plane, sums[0]);
  askForLinesToWrite<4>(to + kQuadsAhead * to_plane);
}

template <bool kFlipped>
inline void sumQuads(PlaneSums<float> p) {
  const QuadColumns columns;
  if (p.planes < 4) return;
  Vector<float> rows[4];
  loadQuads(p.source.data, p.source.plane, rows);
  for (int64_t plane = 0; plane + 4 <= p.planes; plane += 4) {
    Vector<float> taps[9];
    splatQuads<kFlipped>(p, plane, taps, std::make_integer_sequence<int, 9>());
    const float* from = p.source.data + plane * p.source.plane;
    const float* behind = plane + 8 <= p.planes ? from + 4 * p.source.plane : from;
    float* to = p.result + plane * p.result_plane;
    for (int64_t image = 0; image < p.images; ++image, from += p.source_image, to += p.result_image) {
      const float* next = image + 1 < p.images ? from + p.source_image : behind;
      askForLines<4>(from + kQuadsAhead * p.source.plane);
      sumQuadRows(columns, taps, rows, next, p.source.plane, to, p.result_plane);
    }
  }
}

inline void multiplyQuads(PlaneProducts<float> p) {
  const QuadColumns columns;
  for (int64_t plane = 0; plane + 4 <= p.planes; plane += 4) {
    Vector<float> sums[9];
    float* lanes = p.lanes + plane * p.lanes_plane;
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) sums[tap] = load(lanes + tap * kSumRoom<float>);
    const float *x = p.x.data + plane * p.x.plane, *y = p.y.data + plane * p.y.plane;
    for (int64_t image = 0; image < p.images; ++image, x += p.x_image, y += p.y_image) {
      Vector<float> rows[4], left[4];
      loadQuads(x, p.x.plane, rows), loadQuads(y, p.y.plane, left);
      askForLines<4>(x + kQuadsAhead * p.x.plane), askForLines<4>(y + kQuadsAhead * p.y.plane);
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int j = 0; j < 3; ++j) {
          const Vector<float> right = columns.column(rows[r], j);
#pragma unroll
          for (int i = 0; i < 3; ++i)
            if (const int w = r + 1 - i; w >= 0 && w < 4)
              sums[3 * i + j] = multiplyAdd<float>(left[w], right, sums[3 * i + j]);
        }
    }
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) store(lanes + tap * kSumRoom<float>, sums[tap]);
  }
}

#endif

}  // namespace
}  // namespace gpuc
