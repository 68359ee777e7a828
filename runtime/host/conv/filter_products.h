// A filter's gradient with lanes along the rows of the cotangent, or along its outputs; included by
// patch_kernels.cpp alone (see runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/patch_kernels.h"
#include "runtime/host/conv/register_blocks.h"
#include "runtime/host/matmul/dot.h"

namespace gpuc {
namespace {

//===----------------------------------------------------------------------===//
// By rows
//===----------------------------------------------------------------------===//

/// Outputs and taps of a block of a filter's gradient.
constexpr int kFilterOutputs = kVectorBytes == 64 ? 4 : 3;
constexpr int kFilterTaps = kVectorBytes == 64 ? 6 : 4;

/// Asks for rows that come next, line by line between the multiply-adds, in the second-level cache: the
/// processor foresees few of so many.
template <typename T>
class NextRows {
 public:
  NextRows() = default;
  NextRows(const T* row, int64_t row_step, int64_t rows, int64_t columns, int64_t at_once)
      : row_(row), row_step_(row_step), lines_((columns + kLanes<T> - 1) / kLanes<T>), at_once_(at_once) {
    left_ = row ? rows * lines_ : 0;
  }

  inline __attribute__((always_inline)) void askForSome() {
    for (int64_t i = 0; i < at_once_ && left_ > 0; ++i, --left_) {
      __builtin_prefetch(row_ + line_ * kLanes<T>, 0, 2);
      if (++line_ < lines_) continue;
      line_ = 0;
      row_ += row_step_;
    }
  }

 private:
  const T* row_ = nullptr;
  int64_t row_step_ = 0, lines_ = 0, line_ = 0, left_ = 0, at_once_ = 0;
};

template <int kOutputs, int kTaps, typename T>
__attribute__((noinline)) void filterBlock(const FilterProducts<T>& p, int64_t output, int64_t tap,
                                           NextRows<T>& next) {
  Vector<T> sums[kOutputs][kTaps] = {};
  const T* places[kTaps];
  for (int t = 0; t < kTaps; ++t) places[t] = p.image + p.places[tap + t];
  const int64_t whole = (p.columns - 1) / kLanes<T> * kLanes<T>, rest = p.columns - whole;
  auto step = [&](auto loadAt, const T* dy, int64_t at) __attribute__((always_inline)) {
    Vector<T> left[kOutputs];
    for (int o = 0; o < kOutputs; ++o) left[o] = loadAt(dy + o * p.dy_output);
    for (int t = 0; t < kTaps; ++t) {
      const Vector<T> right = loadAt(places[t] + at);
      for (int o = 0; o < kOutputs; ++o) sums[o][t] = multiplyAdd<T>(left[o], right, sums[o][t]);
    }
  };
  auto loadWhole = [](const T* address) __attribute__((always_inline)) { return load(address); };
  auto loadRest = [rest](const T* address)
                      __attribute__((always_inline)) { return loadFirst(address, rest); };
  for (int64_t image = 0; image < p.images; ++image)
    for (int64_t row = 0; row < p.rows; ++row) {
      const T* dy = p.dy + image * p.dy_image + output * p.dy_output + row * p.columns;
      const int64_t at = image * p.image_image + row * p.image_row;
      for (int64_t i = 0; i < whole; i += kLanes<T>) {
        if (p.asks) next.askForSome();
        step(loadWhole, dy + i, at + i);
      }
      if (rest == kLanes<T>)
        step(loadWhole, dy + whole, at + whole);
      else
        step(loadRest, dy + whole, at + whole);
    }
  for (int t = 0; t < kTaps; ++t) {
    Vector<T> four[4];
    for (int o = 0; o < 4; ++o) four[o] = sums[o < kOutputs ? o : 0][t];
    T all[4];
    sum4<T>(four, all);
    for (int o = 0; o < kOutputs; ++o) {
      T& to = p.sums[(output + o) * p.sums_output + (tap + t) * p.sums_tap];
      to = p.accumulate ? to + all[o] : all[o];
    }
  }
}

template <int kOutputs, int kTaps, typename Run>
inline void withFilterBlock(int64_t outputs, int64_t taps, Run run) {
  if constexpr (kOutputs > 1)
    if (outputs < kOutputs) return withFilterBlock<kOutputs - 1, kTaps>(outputs, taps, run);
  if constexpr (kTaps > 1)
    if (taps < kTaps) return withFilterBlock<kOutputs, kTaps - 1>(outputs, taps, run);
  run(std::integral_constant<int, kOutputs>(), std::integral_constant<int, kTaps>());
}

/// The rows of the block of taps behind `tap`, or of those that come after all.
template <typename T>
inline NextRows<T> nextRows(const FilterProducts<T>& p, int64_t tap, int64_t taps, int64_t output_blocks) {
  if (!p.asks) return {};
  const T* row = tap + taps < p.taps ? p.image + p.places[tap + taps] : p.next;
  return {row, p.taps > 1 ? p.places[1] : 0, taps, p.columns, (taps + output_blocks - 1) / output_blocks};
}

template <typename T>
void filterProducts(const FilterProducts<T>& p) {
  const int64_t output_blocks = (p.outputs + kFilterOutputs - 1) / kFilterOutputs;
  const int64_t tap_blocks = (p.taps + kFilterTaps - 1) / kFilterTaps;
  for (int64_t tb = 0; tb < tap_blocks; ++tb) {
    const int64_t tap = evenBegin(p.taps, tap_blocks, tb);
    const int64_t taps = evenBegin(p.taps, tap_blocks, tb + 1) - tap;
    NextRows<T> next = nextRows(p, tap, taps, output_blocks);
    for (int64_t ob = 0; ob < output_blocks; ++ob) {
      const int64_t output = evenBegin(p.outputs, output_blocks, ob);
      withFilterBlock<kFilterOutputs, kFilterTaps>(
          evenBegin(p.outputs, output_blocks, ob + 1) - output, taps,
          [&](auto o, auto t) { filterBlock<o, t, T>(p, output, tap, next); });
    }
  }
}

//===----------------------------------------------------------------------===//
// By outputs
//===----------------------------------------------------------------------===//

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
        const int64_t at = column * p.column_step;
        Vector<T> left[kVectors];
        for (int v = 0; v < kVectors; ++v) left[v] = load(dy + v * kLanes<T>);
        for (int r = 0; r < kRuns; ++r)
          for (int t = 0; t < kTaps; ++t) {
            const Vector<T> right = from[r][at + t] - Vector<T>{};
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
  switch (p.run_taps) {
    case 3:
      return outputBlocks<kVectors, 3>(p, lane);
    case 4:
      return outputBlocks<kVectors, 4>(p, lane);
    case 5:
      return outputBlocks<kVectors, 5>(p, lane);
    case 7:
      return outputBlocks<kVectors, 7>(p, lane);
    case 8:
      return outputBlocks<kVectors, 8>(p, lane);
    default:
      return outputBlocks<kVectors, 11>(p, lane);
  }
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
