// Correlation with lanes along the rows of the result; included by patch_kernels.cpp alone (see
// runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/patch_kernels.h"
#include "runtime/host/conv/register_blocks.h"
#include "runtime/host/matmul/load.h"

namespace gpuc {
namespace {

/// Outputs of one block: so many that a loaded vector of the image meets enough of them.
constexpr int kMostOutputs = kVectorBytes == 64 ? 8 : 4;
constexpr int kMostVectors = kVectorBytes == 64 ? 4 : 3;

constexpr int mostVectors(int outputs) {
  const int most = kMostSums / outputs;
  return most < kMostVectors ? most : kMostVectors;
}

/// The first `lanes` of a vector, which may be all.
template <typename S>
inline Vector<Computed<S>> loadLanes(const S* from, int64_t lanes) {
  return lanes == kLanes<Computed<S>> ? load(from) : loadFirst(from, lanes);
}

template <typename S>
inline void storeLanes(S* to, Vector<Computed<S>> v, int64_t lanes) {
  if (lanes == kLanes<Computed<S>>)
    store(to, v);
  else
    storeFirst(to, v, lanes);
}

/// One block of the result: where its vectors lie in the packed strip, in the sums of the channels before, if
/// there are any, and in `result`.
template <typename T>
struct CorrelationBlock {
  const T* image[kMostVectors];
  int64_t sums_place[kMostVectors], place[kMostVectors], lanes[kMostVectors];
  bool has_all_lanes;  // of each vector
  const T* filter;
  const T* sums;
  int64_t sums_output;
  T* result;
  int64_t result_output;
  const DirectTap *taps, *taps_end;
};

/// kOutputs x kVectors vectors of the result. Those that the next block stores are asked for: rows of as many
/// outputs are more streams than the processor foresees.
template <int kOutputs, int kVectors, typename T>
__attribute__((noinline)) void correlateBlock(const CorrelationBlock<T>& b, int64_t channels,
                                              int64_t image_channel, int64_t filter_channel,
                                              int64_t filter_output) {
  Vector<T> sums[kOutputs][kVectors] = {};
  const T* image[kVectors];
  for (int v = 0; v < kVectors; ++v) image[v] = b.image[v];
  const DirectTap *const taps = b.taps, *const taps_end = b.taps_end;
  const T* const filter = b.filter;
  for (int o = 0; o < kOutputs; ++o)
    for (int v = 0; v < kVectors; ++v)
      __builtin_prefetch(b.result + o * b.result_output + b.place[v] + kVectors * kLanes<T>, 1);
  for (int64_t channel = 0; channel < channels; ++channel) {
    const int64_t offset = channel * image_channel;
    const T* weights = filter + channel * filter_channel;
    for (const DirectTap* tap = taps; tap < taps_end; ++tap) {
      Vector<T> x[kVectors];
      for (int v = 0; v < kVectors; ++v) x[v] = load(image[v] + offset + tap->image);
      const T* weight = weights + tap->filter;
      for (int o = 0; o < kOutputs; ++o) {
        const Vector<T> w = weight[o * filter_output] - Vector<T>{};
        for (int v = 0; v < kVectors; ++v) sums[o][v] = multiplyAdd<T>(w, x[v], sums[o][v]);
        for (int v = 0; v < kVectors; ++v) addUpHere(sums[o][v]);
      }
    }
  }
  if (b.has_all_lanes && !b.sums) {
#pragma clang loop unroll(full)
    for (int o = 0; o < kOutputs; ++o)
#pragma clang loop unroll(full)
      for (int v = 0; v < kVectors; ++v) store(b.result + o * b.result_output + b.place[v], sums[o][v]);
    return;
  }
#pragma clang loop unroll(full)  // lest sums stand in memory, to be found by a number
  for (int o = 0; o < kOutputs; ++o)
#pragma clang loop unroll(full)
    for (int v = 0; v < kVectors; ++v) {
      Vector<T> sum = sums[o][v];
      if (b.sums) sum = loadLanes(b.sums + o * b.sums_output + b.sums_place[v], b.lanes[v]) + sum;
      storeLanes(b.result + o * b.result_output + b.place[v], sum, b.lanes[v]);
    }
}

/// Calls run with `outputs` and `vectors` as constants.
template <int kOutputs, int kVectors, typename Run>
inline void withBlockSize(int64_t outputs, int64_t vectors, Run run) {
  if constexpr (kOutputs > 1)
    if (outputs < kOutputs)
      return withBlockSize<kOutputs - 1, mostVectors(kOutputs - 1)>(outputs, vectors, run);
  if constexpr (kVectors > 1)
    if (vectors < kVectors) return withBlockSize<kOutputs, kVectors - 1>(outputs, vectors, run);
  run(std::integral_constant<int, kOutputs>(), std::integral_constant<int, kVectors>());
}

/// The kernel rows that meet more than padding in any of the result's rows [row, row_end).
template <typename S>
inline void kernelRows(const Correlation<S>& c, int64_t row, int64_t row_end, int64_t& first, int64_t& end) {
  auto meets = [&](int64_t i) {
    return c.valid_rows[i].begin < c.first_row + row_end && c.valid_rows[i].end > c.first_row + row;
  };
  first = 0, end = c.kernel_rows;
  while (first < end && !meets(first)) ++first;
  while (end > first && !meets(end - 1)) --end;
}

/// Vectors [first, first + count) of the result, row by row, of `outputs` outputs.
template <typename S>
void correlateVectors(const Correlation<S>& c, int64_t output, int64_t outputs, int64_t first,
                      int64_t count) {
  using T = Computed<S>;
  const int64_t vectors_per_row = (c.columns + kLanes<T> - 1) / kLanes<T>;
  alignas(64) T scratch[kIsWidened<S> ? kMostOutputs * kMostVectors * kLanes<T> : 1];
  const bool rounds = kIsWidened<S> && c.ends;
  CorrelationBlock<T> block;
  const int64_t first_row = first / vectors_per_row;
  block.has_all_lanes = true;
  int64_t row = first_row, column = (first - first_row * vectors_per_row) * kLanes<T>, row_end = row;
  for (int64_t v = 0; v < count; ++v) {
    const int64_t rest = c.columns - column;
    block.image[v] = c.image + row * c.image_row + column;
    block.lanes[v] = rest < kLanes<T> ? rest : kLanes<T>;
    block.has_all_lanes &= rest >= kLanes<T>;
    block.sums_place[v] = row * c.columns + column;
    block.place[v] = rounds ? v * kLanes<T> : block.sums_place[v];
    row_end = row + 1;
    column += kLanes<T>;
    if (column >= c.columns) column = 0, ++row;
  }
  T* sums = c.sums + output * c.sums_output;
  block.filter = c.filter + output * c.filter_output;
  block.sums = c.begins ? nullptr : sums;
  block.sums_output = c.sums_output;
  block.result = rounds ? scratch : sums;
  block.result_output = rounds ? kMostVectors * kLanes<T> : c.sums_output;
  int64_t kernel_row, kernel_row_end;
  kernelRows(c, first_row, row_end, kernel_row, kernel_row_end);
  block.taps = c.taps + kernel_row * c.taps_per_row;
  block.taps_end = c.taps + kernel_row_end * c.taps_per_row;
  withBlockSize<kMostOutputs, mostVectors(kMostOutputs)>(outputs, count, [&](auto o, auto v) {
    correlateBlock<o, v, T>(block, c.channels, c.image_channel, c.filter_channel, c.filter_output);
  });
  if (!rounds) return;
  S* result = c.result + output * c.result_output;
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t v = 0; v < count; ++v)
      storeLanes(result + o * c.result_output + block.sums_place[v],
                 load(scratch + o * block.result_output + block.place[v]), block.lanes[v]);
}

template <typename S>
void correlate(const Correlation<S>& c) {
  const int64_t vectors = c.rows * ((c.columns + kLanes<Computed<S>> - 1) / kLanes<Computed<S>>);
  const int64_t output_blocks = (c.outputs + kMostOutputs - 1) / kMostOutputs;
  for (int64_t ob = 0; ob < output_blocks; ++ob) {
    const int64_t output = evenBegin(c.outputs, output_blocks, ob);
    const int64_t outputs = evenBegin(c.outputs, output_blocks, ob + 1) - output;
    const int64_t most = mostVectors(static_cast<int>(outputs));
    const int64_t vector_blocks = (vectors + most - 1) / most;
    for (int64_t vb = 0; vb < vector_blocks; ++vb) {
      const int64_t first = evenBegin(vectors, vector_blocks, vb);
      correlateVectors(c, output, outputs, first, evenBegin(vectors, vector_blocks, vb + 1) - first);
    }
  }
}

}  // namespace
}  // namespace gpuc
