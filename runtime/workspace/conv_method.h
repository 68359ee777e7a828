// By which method the host computes a convolution: the one that takes least, by the shape alone.
#pragma once

#include <algorithm>

#include "runtime/workspace/conv_channels_work.h"
#include "runtime/workspace/conv_depthwise.h"
#include "runtime/workspace/conv_subsampled.h"
#include "runtime/workspace/conv_winograd_work.h"
#include "runtime/workspace/conv_work.h"

namespace gpuc {

inline constexpr ConvMethod kConvMethods[] = {
    ConvMethod::patches,     ConvMethod::by_rows,    ConvMethod::by_outputs, ConvMethod::by_images,
    ConvMethod::by_channels, ConvMethod::subsampled, ConvMethod::depthwise,  ConvMethod::winograd};

constexpr const char* nameOf(ConvMethod method) {
  constexpr const char* kNames[] = {"patches",     "by_rows",    "by_outputs", "by_images",
                                    "by_channels", "subsampled", "depthwise",  "winograd"};
  return kNames[static_cast<int>(method)];
}

constexpr bool isStrided(const ConvShape& s) { return s.height.stride > 1 || s.width.stride > 1; }

/// Whether the kernels of by_outputs have rows of so many taps: by strides, of few channels, those of stems.
constexpr bool hasRunsOf(int64_t taps, bool is_strided) {
  if (taps == 3 || taps == 5 || taps == 7) return true;
  return is_strided && (taps == 4 || taps == 8 || taps == 11);
}

//===----------------------------------------------------------------------===//
// What can compute it
//===----------------------------------------------------------------------===//

/// How much of `total` lanes there is in whole vectors of 64 bytes, in percent.
constexpr int64_t lanesUsed(int64_t total, const ConvShape& shape) {
  return 100 * total / (vectorsOf(total, shape) * vectorLanes(shape));
}

/// Whether rows of two planes are a vector, for filters of many taps: where the result is as large as the
/// picture (runtime/host/conv/depthwise/vector_blocks.h).
constexpr bool fillsPairs(const ConvShape& shape) {
  constexpr int64_t kQuarter = 25, kFewRows = 4;
  auto isKept = [](const ConvAxis& axis) { return axis.input == axis.output && axis.low == axis.kernel / 2; };
  return isKept(shape.height) && isKept(shape.width) && shape.height.output >= kFewRows &&
         lanesUsed(shape.width.output, shape) > kQuarter;
}

/// Whether a depthwise filter of many taps has rows of less than half a vector, and the batch fills vectors.
constexpr bool fillsImagesAlone(const ConvShape& shape) {
  constexpr int64_t kManyTaps = 49, kHalf = 50;
  return shape.kind != ConvKind::filter_gradient && shape.taps() >= kManyTaps && shape.width.stride == 1 &&
         lanesUsed(shape.width.output, shape) < kHalf && !fillsPairs(shape) &&
         fitsImages(correlationOf(shape));
}

/// Whether a method can compute the shape.
constexpr bool fitsMethod(const ConvShape& shape, ConvMethod method) {
  const bool to_filter = shape.kind == ConvKind::filter_gradient;
  const bool correlates = !(shape.kind == ConvKind::input_gradient && isStrided(shape));
  switch (method) {
    case ConvMethod::patches:
      return true;
    case ConvMethod::by_rows:
      if (to_filter && shape.isPointwise()) return fitsPixelRows(shape);
      return correlates && (to_filter || shape.taps() > 1) && fitsDirect(shape, method);
    case ConvMethod::by_outputs:
      return to_filter && shape.width.dilation == 1 && hasRunsOf(shape.width.kernel, isStrided(shape)) &&
             fitsDirect(shape, method);
    case ConvMethod::by_images:
      return !to_filter && correlates && shape.taps() > 1 && isModest(correlationOf(shape)) &&
             fitsImages(correlationOf(shape));
    case ConvMethod::by_channels:
      return fitsChannels(shape);
    case ConvMethod::subsampled:
      return fitsSubsampled(shape);
    case ConvMethod::depthwise:
      return fitsDepthwise(shape);
    case ConvMethod::winograd:
      return fitsWinograd(shape) && hasPixelsForWinograd(shape);
  }
  return false;
}

constexpr ConvWork convWork(const ConvShape& s, ConvMethod method) {
  switch (method) {
    case ConvMethod::patches:
      return patchesWork(s);
    case ConvMethod::by_rows:
      return s.kind == ConvKind::filter_gradient ? filterRowsWork(s) : rowsWork(s);
    case ConvMethod::by_outputs:
      return outputsWork(s);
    case ConvMethod::by_images:
      return imagesWork(s);
    case ConvMethod::by_channels:
      return channelsWork(s);
    case ConvMethod::subsampled: {  // beside what is left to do
      ConvWork work;
      const int64_t pictures = s.batch * s.in_channels;
      if (s.kind == ConvKind::input_gradient) {
        work.runs = pictures * s.height.input;
        work.vectors = work.runs * vectorsOf(s.width.input, s);
      } else {
        work.runs = pictures * s.taps() * s.height.output;
        work.strided = pictures * s.taps() * s.outputPixels();
      }
      return work;
    }
    case ConvMethod::depthwise:
      return depthwiseWork(s);
    case ConvMethod::winograd:
      return winogradWork(s);
  }
  return {};
}

//===----------------------------------------------------------------------===//
// What takes least
//===----------------------------------------------------------------------===//

/// Picoseconds of each unit of ConvWork.
struct ConvRates {
  int64_t step, block, sum, run, vector, strided, square;
};

/// Fitted to what some 4,000 shapes took on a core with AVX-512 (bench/conv_methods.py), so that
/// what is chosen loses least against what would have been quickest. They are the same on every machine,
/// since bits depend on what is chosen.
constexpr ConvRates ratesOf(const ConvShape& s, ConvMethod method) {
  switch (method) {
    case ConvMethod::patches:
      if (s.isPointwise()) return {82, 0, 260, 0, 760, 250, 10000};
      return {110, 0, 340, 5900, 600, 260, 11000};
    case ConvMethod::by_rows:
      if (s.isPointwise()) return {82, 1500, 0, 2200, 700, 0, 0};
      return {88, 1200, 1400, 1800, 1600, 160, 0};
    case ConvMethod::by_outputs:
      return {115, 0, 83, 2200, 1100, 0, 16000};
    case ConvMethod::by_images:
      return {94, 8200, 560, 260, 180, 0, 10000};
    case ConvMethod::by_channels:
      return {86, 16000, 270, 1500, 2000, 0, 12000};
    case ConvMethod::subsampled:
      return {0, 0, 0, 1600, 540, 120, 0};
    case ConvMethod::winograd:
      return {86, 4000, 270, 500, 500, 0, 12000};
    case ConvMethod::depthwise:  // which is compared with nothing
      return {};
  }
  return {};
}

/// Whether there is something to count, and all of it fits 64 bits by far.
constexpr bool isCountable(const ConvShape& s) {
  constexpr double kMost = 1e13;
  const double products = static_cast<double>(s.batch) * static_cast<double>(s.out_channels) *
                          static_cast<double>(s.outputPixels()) * static_cast<double>(s.patchRows());
  const double read = static_cast<double>(s.batch) * static_cast<double>(s.in_channels) *
                      static_cast<double>(s.inputPixels());
  return s.groupOutputs() > 0 && products > 0 && products < kMost && read < kMost;
}

constexpr ConvMethod convMethod(const ConvShape& shape);

/// Picoseconds: half for one thread, half for two, which share few tiles unevenly.
constexpr int64_t convCost(const ConvShape& s, ConvMethod method) {
  const ConvWork work = convWork(s, method);
  const ConvRates rates = ratesOf(s, method);
  const int64_t cost = work.steps * rates.step + work.blocks * rates.block + work.sums * rates.sum +
                       work.runs * rates.run + work.vectors * rates.vector + work.strided * rates.strided +
                       work.squares * rates.square;
  if (method == ConvMethod::subsampled) {
    const ConvShape left = subsampledShape(s);
    return cost + convCost(left, convMethod(left));
  }
  return cost / (2 * work.tiles) * (work.tiles + 2 * ((work.tiles + 1) / 2));
}

/// A filter that meets one channel alone has kernels of its own where there are some for its size; all others
/// are computed by what takes least.
constexpr ConvMethod convMethod(const ConvShape& shape) {
  if (fitsMethod(shape, ConvMethod::depthwise) && !fillsImagesAlone(shape)) return ConvMethod::depthwise;
  ConvMethod best = ConvMethod::patches;
  if (!isCountable(shape)) return best;
  int64_t least = convCost(shape, best);
  for (ConvMethod method : kConvMethods) {
    if (method == ConvMethod::depthwise || !fitsMethod(shape, method)) continue;
    const int64_t cost = convCost(shape, method);
    if (cost < least) least = cost, best = method;
  }
  return best;
}

}  // namespace gpuc
