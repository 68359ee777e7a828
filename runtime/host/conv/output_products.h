// A filter's gradient with an output in each lane; included by patch_kernels.cpp alone (see
// runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/direct.h"
#include "runtime/host/conv/register_blocks.h"
#include "runtime/host/matmul/load.h"

namespace gpuc {
namespace {

/// kRuns x kTaps rows of kVectors vectors of sums; `run` is the first, `lane` the first output.
template <int kVectors, int kTaps, int kRuns, typename T>
__attribute__((noinline)) void outputBlock(const FilterProducts<T>& p, int64_t lane, int64_t run) {
  Vector<T> sums[kRuns][kTaps][kVectors] = {};
  const T* dy = p.dy + lane;
  for (int64_t image = 0; image < p.images; ++image)
    for (int64_t row = 0; row < p.rows; ++row) {
      const T* from[kRuns];
      for (int r = 0; r < kRuns; ++r)
        from[r] = p.image + image * p.image_image + row * p.image_row + p.places[run + r];
      for (int64_t column = 0; column < p.columns; ++column, dy += p.dy_pixel) {
        Vector<T> left[kVectors];
        for (int v = 0; v < kVectors; ++v) left[v] = load(dy + v * kLanes<T>);
        for (int r = 0; r < kRuns; ++r)
          for (int t = 0; t < kTaps; ++t) {
            const Vector<T> right = from[r][column + t] - Vector<T>{};
            for (int v = 0; v < kVectors; ++v) sums[r][t][v] = multiplyAdd<T>(right, left[v], sums[r][t][v]);
          }
      }
    }
  const int64_t rest = p.outputs - lane;
  const int64_t outputs = rest < kVectors * kLanes<T> ? rest : kVectors * kLanes<T>;
  alignas(64) T lanes[kRuns * kTaps][kVectors * kLanes<T>];
  for (int r = 0; r < kRuns; ++r)
    for (int t = 0; t < kTaps; ++t)
      for (int v = 0; v < kVectors; ++v) store(&lanes[r * kTaps + t][v * kLanes<T>], sums[r][t][v]);
  for (int64_t o = 0; o < outputs; ++o) {
    T* to = p.sums + (lane + o) * p.sums_output + run * kTaps;
    for (int i = 0; i < kRuns * kTaps; ++i) to[i] = p.accumulate ? to[i] + lanes[i][o] : lanes[i][o];
  }
}

/// Calls run with `runs` as a constant.
template <int kRuns, typename Run>
inline void withRuns(int64_t runs, Run run) {
  if constexpr (kRuns > 1)
    if (runs < kRuns) return withRuns<kRuns - 1>(runs, run);
  run(std::integral_constant<int, kRuns>());
}

template <int kVectors, int kTaps, typename T>
void outputBlocks(const FilterProducts<T>& p, int64_t lane) {
  constexpr int kMost = (kMostSums + 1) / (kTaps * kVectors) > 0 ? (kMostSums + 1) / (kTaps * kVectors) : 1;
  constexpr int kRuns = kMost < 5 ? kMost : 5;
  const int64_t all = p.taps / kTaps, blocks = (all + kRuns - 1) / kRuns;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t run = evenBegin(all, blocks, b);
    withRuns<kRuns>(evenBegin(all, blocks, b + 1) - run,
                    [&](auto runs) { outputBlock<kVectors, kTaps, runs, T>(p, lane, run); });
  }
}

template <int kVectors, typename T>
void outputVectors(const FilterProducts<T>& p, int64_t lane) {
  if (p.run_taps == 3)
    outputBlocks<kVectors, 3>(p, lane);
  else if (p.run_taps == 5)
    outputBlocks<kVectors, 5>(p, lane);
  else
    outputBlocks<kVectors, 7>(p, lane);
}

template <typename T>
void outputProducts(const FilterProducts<T>& p) {
  constexpr int kVectors = kVectorBytes == 64 ? 2 : 1;  // 12 sums of 16 registers leave no room for two
  for (int64_t lane = 0; lane < p.outputs; lane += kVectors * kLanes<T>)
    if (p.outputs - lane > kLanes<T>)
      outputVectors<kVectors>(p, lane);
    else
      outputVectors<1>(p, lane);
}

}  // namespace
}  // namespace gpuc
