// Gathering and scattering patches, and packing padded images; included by patch_kernels.cpp alone (see
// runtime/host/matmul/vector.h).
#pragma once

#include "runtime/host/conv/depthwise/lanes.h"
#include "runtime/host/conv/patch_kernels.h"
#include "runtime/host/matmul/load.h"

namespace gpuc {
namespace {

template <typename T>
inline void zero(T* to, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>) store(to + i, Vector<T>{});
  if (i < count) storeFirst(to + i, Vector<T>{}, count - i);
}

/// to[i] = from[2 · i]. The element behind the last one that is copied may not be there.
template <typename T>
inline void copyEveryOther(T* to, const T* from, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes<T> < count; i += kLanes<T>) store(to + i, loadSteps<2, T>(from + 2 * i));
  const int64_t rest = count - i;
  if (rest <= 0) return;
  const Vector<T> last = loadSteps<2, T>(from + 2 * i, StepMask<2, T>(0, 2 * rest - 1));
  rest == kLanes<T> ? store(to + i, last) : storeFirst(to + i, last, rest);
}

/// to[i] = from[i · step].
template <typename S>
inline void copy(Computed<S>* to, const S* from, int64_t count, int64_t step) {
  using T = Computed<S>;
  if constexpr (!kIsWidened<S>)
    if (step == 2) return copyEveryOther(to, from, count);
  int64_t i = 0;
  if (step == 1) {
    for (; i + kLanes<T> <= count; i += kLanes<T>) store(to + i, load(from + i));
    if (i < count) storeFirst(to + i, loadFirst(from + i, count - i), count - i);
  } else if (step == 2) {
    for (; i < count; ++i) to[i] = widenOne(from[2 * i]);
  } else {
    for (; i < count; ++i) to[i] = widenOne(from[i * step]);
  }
}

/// to[i · step] += from[i].
template <typename T>
inline void add(T* to, const T* from, int64_t count, int64_t step) {
  int64_t i = 0;
  if (step == 1) {
    for (; i + kLanes<T> <= count; i += kLanes<T>) store(to + i, load(to + i) + load(from + i));
    if (const int64_t rest = count - i; rest > 0)
      storeFirst(to + i, loadFirst(to + i, rest) + loadFirst(from + i, rest), rest);
  } else if (step == 2) {
    for (; i < count; ++i) to[2 * i] += from[i];
  } else {
    for (; i < count; ++i) to[i * step] += from[i];
  }
}

/// Calls visit(at, count, source) for each run of columns of one row of the block: `source` is the offset of
/// the first one's element in the image's channel, -1 where the run lies outside of the image.
template <typename Visit>
inline void forRuns(const PatchBlock& b, int64_t i, int64_t j, int64_t p, int64_t q, Visit visit) {
  const ConvAxis &height = *b.height, &width = *b.width;
  const ValidRange rows = b.valid_rows[i], columns = b.valid_columns[j];
  for (int64_t done = 0; done < b.pixels; ++p, q = 0) {
    int64_t end = width.output;
    if (end - q > b.pixels - done) end = q + b.pixels - done;
    int64_t first = columns.begin > q ? columns.begin : q;
    int64_t last = columns.end < end ? columns.end : end;
    if (p < rows.begin || p >= rows.end || first >= last) first = last = end;
    if (first > q) visit(done, first - q, int64_t{-1});
    if (last > first) {
      const int64_t h = p * height.stride - height.low + i * height.dilation;
      const int64_t v = first * width.stride - width.low + j * width.dilation;
      visit(done + first - q, last - first, h * width.input + v);
    }
    if (end > last) visit(done + last - q, end - last, int64_t{-1});
    done += end - q;
  }
}

/// Calls visit(row, channel offset, i, j, p, q) for each row of the block; (p, q) is its first pixel.
template <typename Visit>
inline void forRows(const PatchBlock& b, Visit visit) {
  const int64_t channel_elements = b.height->input * b.width->input;
  const int64_t p = b.pixel / b.width->output, q = b.pixel % b.width->output;
  int64_t j = b.row % b.width->kernel;
  int64_t i = b.row / b.width->kernel % b.height->kernel;
  int64_t channel = b.row / b.width->kernel / b.height->kernel * channel_elements;
  for (int64_t row = 0; row < b.rows; ++row) {
    visit(row, channel, i, j, p, q);
    if (++j < b.width->kernel) continue;
    j = 0;
    if (++i < b.height->kernel) continue;
    i = 0;
    channel += channel_elements;
  }
}

/// Whether the outputs' rows follow one another as the image's rows do. Then a row of the block is one run of
/// the image, but for the pixels whose tap lies outside: narrow images have much longer runs so.
inline bool isOneRun(const PatchBlock& b) {
  return b.height->stride == 1 && b.width->stride == 1 && b.width->output == b.width->input;
}

/// The part of such a row that lies in the image's channel, and the offset of the row's first element there.
struct OneRun {
  int64_t begin, end, source;

  OneRun(const PatchBlock& b, int64_t i, int64_t j) {
    source = b.pixel + (i * b.height->dilation - b.height->low) * b.width->input + j * b.width->dilation -
             b.width->low;
    begin = source < 0 ? -source : 0;
    end = b.height->input * b.width->input - source;
    if (end > b.pixels) end = b.pixels;
  }
};

/// Zeroes [begin, end) of the block's row, as far as the block reaches.
template <typename T>
inline void zeroWithin(const PatchBlock& b, T* row, int64_t begin, int64_t end) {
  if (begin < 0) begin = 0;
  if (end > b.pixels) end = b.pixels;
  if (begin < end) zero(row + begin, end - begin);
}

/// Zeroes the pixels of the block's row whose tap lies outside.
template <typename T>
inline void zeroOutside(const PatchBlock& b, int64_t i, int64_t j, int64_t p, int64_t q, T* row) {
  const ValidRange rows = b.valid_rows[i], columns = b.valid_columns[j];
  const int64_t width = b.width->output;
  for (int64_t at = -q; at < b.pixels; at += width, ++p) {
    const bool inside = p >= rows.begin && p < rows.end;
    zeroWithin(b, row, at, inside ? at + columns.begin : at + width);
    if (inside && columns.end < width) zeroWithin(b, row, at + columns.end, at + width);
  }
}

template <typename S>
void gatherPatches(const PatchBlock& b, const S* image, Computed<S>* patches) {
  const int64_t step = b.width->stride;
  const bool one_run = isOneRun(b);
  forRows(b, [&](int64_t row, int64_t channel, int64_t i, int64_t j, int64_t p, int64_t q) {
    Computed<S>* to = patches + row * b.stride;
    const S* from = image + channel;
    if (one_run) {
      const OneRun run(b, i, j);
      if (run.begin < run.end) copy(to + run.begin, from + run.source + run.begin, run.end - run.begin, 1);
      return zeroOutside(b, i, j, p, q, to);
    }
    forRuns(b, i, j, p, q, [&](int64_t at, int64_t count, int64_t source) {
      if (source < 0)
        zero(to + at, count);
      else
        copy(to + at, from + source, count, step);
    });
  });
}

template <typename T>
void scatterPatches(const PatchBlock& b, T* patches, T* image) {
  const int64_t step = b.width->stride;
  const bool one_run = isOneRun(b);
  forRows(b, [&](int64_t row, int64_t channel, int64_t i, int64_t j, int64_t p, int64_t q) {
    T* from = patches + row * b.stride;
    T* to = image + channel;
    if (one_run) {
      const OneRun run(b, i, j);
      zeroOutside(b, i, j, p, q, from);
      if (run.begin < run.end) add(to + run.source + run.begin, from + run.begin, run.end - run.begin, 1);
      return;
    }
    forRuns(b, i, j, p, q, [&](int64_t at, int64_t count, int64_t target) {
      if (target >= 0) add(to + target, from + at, count, step);
    });
  });
}

/// One row: values with step - 1 zeros behind each, and zeros up to `columns`.
template <typename S>
inline void spreadRow(const S* values, int64_t count, int64_t step, S* to, int64_t columns) {
  int64_t i = 0;
  if (step == 2) {
    const int64_t pairs = count < columns / 2 ? count : columns / 2;
    for (; i < pairs; ++i) to[2 * i] = values[i], to[2 * i + 1] = S{};
  }
  for (int64_t at = step * i; at < columns; ++at) to[at] = S{};
  for (; i < count; ++i) to[step * i] = values[i];
}

/// A row with a zero behind each value, in whole vectors, which may reach into the rows behind; or, if
/// `kWithin`, in no more than its columns. `values` is null: zeros.
template <bool kWithin, typename T>
inline void spreadRowByTwo(const T* values, int64_t count, T* to, int64_t columns) {
  constexpr int64_t kHalf = kLanes<T> / 2;
  for (int64_t at = 0; at < columns; at += kLanes<T>) {
    Vector<T> spread = {};
    if (values && at / 2 < count) {
      const int64_t left = count - at / 2;
      const Vector<T> some = loadLanes<T>(values + at / 2, lanesWithin<T>(0, left < kHalf ? left : kHalf));
      spread = alternate<0, T>(some, Vector<T>{}, LaneIndices<T>());
    }
    kWithin ? storeLanes<T>(to + at, spread, lanesWithin<T>(0, columns - at)) : store(to + at, spread);
  }
}

template <typename S>
void spreadPixels(const SpreadPixels<S>& p) {
  const int64_t whole_vectors = (p.result_columns + kLanes<S> - 1) / kLanes<S> * kLanes<S>;
  for (int64_t channel = 0; channel < p.channels; ++channel) {
    const S* values = p.values + channel * p.values_channel;
    S* to = p.result + channel * p.result_channel;
    for (int64_t row = 0; row < p.result_rows; ++row, to += p.result_columns) {
      const bool has = row % p.row_step == 0 && row / p.row_step < p.rows;
      if constexpr (!kIsWidened<S>)
        if (p.column_step == 2) {
          const S* from = has ? values : nullptr;
          if (has) values += p.columns;
          // Rows behind are stored later, but what is behind the last one is someone else's, or done.
          if ((p.result_rows - row) * p.result_columns >= whole_vectors)
            spreadRowByTwo<false>(from, p.columns, to, p.result_columns);
          else
            spreadRowByTwo<true>(from, p.columns, to, p.result_columns);
          continue;
        }
      spreadRow(values, has ? p.columns : 0, p.column_step, to, p.result_columns);
      if (has) values += p.columns;
    }
  }
}

/// to[i] = from[i · step].
template <typename T, typename S>
inline void takeRow(const S* from, int64_t count, int64_t step, T* to) {
  if constexpr (std::is_same_v<S, T> && !kIsWidened<S>)
    if (step == 2) return copyEveryOther(to, from, count);
  for (int64_t i = 0; i < count; ++i)
    if constexpr (std::is_same_v<S, T>)
      to[i] = from[i * step];
    else
      to[i] = widenOne(from[i * step]);
}

/// Lines of what is taken some channels later are asked for: the processor does not foresee rows of which
/// only some are read.
template <typename S, typename T>
void takePixels(const TakenPixels<S, T>& p) {
  constexpr int64_t kAheadBytes = 4096, kLine = 64 / sizeof(S);
  const int64_t row = p.pixel / p.columns, column = p.pixel % p.columns;
  const int64_t read = p.columns * p.column_step, rows = (p.pixels + p.columns - 1) / p.columns;
  const int64_t channels_ahead = kAheadBytes / (rows * p.picture_row * static_cast<int64_t>(sizeof(S))) + 1;
  const int64_t ahead = channels_ahead * p.picture_channel;
  for (int64_t channel = 0; channel < p.channels; ++channel) {
    const S* from = p.picture + channel * p.picture_channel + row * p.picture_row;
    T* to = p.values + channel * p.values_channel;
    int64_t begin = column;
    for (int64_t left = p.pixels; left > 0; from += p.picture_row, begin = 0) {
      const int64_t count = left < p.columns - begin ? left : p.columns - begin;
      for (int64_t at = 0; at < read; at += kLine) __builtin_prefetch(from + ahead + at);
      takeRow(from + begin * p.column_step, count, p.column_step, to);
      to += count, left -= count;
    }
  }
}

/// Vectors of a packed row: from[offset + step · i], i in [0, count), zeros beside the width. The last vector
/// begins where it ends with the row, so that none is stored in part.
template <int kStep, typename T>
inline void packVectors(const T* from, int64_t width, int64_t offset, T* to, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes<T>) {
    const int64_t at = i + kLanes<T> <= count ? i : count - kLanes<T>, first = offset + kStep * at;
    if (first >= 0 && first + kStep * kLanes<T> <= width)
      store(to + at, loadSteps<kStep, T>(from + first));
    else
      store(to + at, loadSteps<kStep, T>(from + first, StepMask<kStep, T>(-first, width - first)));
  }
}

/// One packed row: from[0], from[step], … between zeros; `width` elements, of which the first to be taken is
/// `offset`, which may lie before or behind them.
template <typename S>
inline void packRow(const S* from, int64_t width, int64_t offset, int64_t step, Computed<S>* to,
                    int64_t count) {
  if constexpr (!kIsWidened<S>)
    if (count >= kLanes<S> && step <= 2)
      return step == 1 ? packVectors<1>(from, width, offset, to, count)
                       : packVectors<2>(from, width, offset, to, count);
  int64_t begin = offset < 0 ? (-offset + step - 1) / step : 0;
  int64_t end = width > offset ? (width - offset + step - 1) / step : 0;
  if (begin > count) begin = count;
  if (end > count) end = count;
  if (end <= begin) return zero(to, count);
  zero(to, begin);
  copy(to + begin, from + offset + begin * step, end - begin, step);
  zero(to + end, count - end);
}

/// Two packed rows, of even and odd elements: to[j][i] = from[offset + 2 · i + j]. What is loaded is used by
/// both.
template <typename T>
inline void packPair(const T* from, int64_t width, int64_t offset, T* even, T* odd, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes<T>) {
    const int64_t at = i + kLanes<T> <= count ? i : count - kLanes<T>, first = offset + 2 * at;
    Vector<T> low, high;
    if (first >= 0 && first + 2 * kLanes<T> <= width) {
      low = load(from + first), high = load(from + first + kLanes<T>);
    } else {
      const StepMask<2, T> mask(-first, width - first);
      low = loadLanes<T>(from + first, mask.parts[0]);
      high = loadLanes<T>(from + first + kLanes<T>, mask.parts[1]);
    }
    store(even + at, everyOther<T>(low, high, LaneIndices<T>()));
    store(odd + at, everyOdd<T>(low, high, LaneIndices<T>()));
  }
}

/// A row of the image to where its column phases go, `phase` apart.
template <typename S>
inline void packPhases(const PackedStrip& p, const S* from, Computed<S>* to, int64_t phase) {
  if constexpr (!kIsWidened<S>)
    if (p.column_step == 2 && p.column_phases == 2 && p.row_stride >= kLanes<S>)
      return packPair(from, p.width, -p.left, to, to + phase, p.row_stride);
  for (int64_t b = 0; b < p.column_phases; ++b)
    packRow(from, p.width, b - p.left, p.column_step, to + b * phase, p.row_stride);
}

/// Row by row as the image lies, so that memory is read as it adjoins.
template <typename S>
void packStrip(const PackedStrip& p, const S* image, Computed<S>* packed) {
  const int64_t phase = p.phaseStride();
  for (int64_t channel = 0; channel < p.channels; ++channel, packed += p.channelStride())
    for (int64_t r = 0; r < p.rows; ++r)
      for (int64_t a = 0; a < p.row_phases; ++a) {
        const int64_t row = (p.first_row + r) * p.row_step + a - p.top;
        Computed<S>* to = packed + a * p.column_phases * phase + r * p.row_stride;
        if (row >= 0 && row < p.height)
          packPhases(p, image + (channel * p.height + row) * p.width, to, phase);
        else
          for (int64_t b = 0; b < p.column_phases; ++b) zero(to + b * phase, p.row_stride);
      }
}

}  // namespace
}  // namespace gpuc
