// What the host does for a convolution by each of its methods, counted from the shape alone: what
// conv_method.h compares. By channels: conv_channels_work.h.
#pragma once

#include <algorithm>

#include "runtime/workspace/conv_depthwise.h"
#include "runtime/workspace/conv_direct.h"
#include "runtime/workspace/conv_patches.h"
#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// All of it in one thread. A vector has 64 bytes.
struct ConvWork {
  int64_t steps = 0;    // of the loops that multiply and add up, in half cycles (blockSteps)
  int64_t blocks = 0;   // of sums in registers, each begun and left by itself
  int64_t sums = 0;     // vectors of them, loaded or stored
  int64_t runs = 0;     // of elements that adjoin, each begun by itself
  int64_t vectors = 0;  // copied, or added, in such runs
  int64_t strided = 0;  // elements that are copied one by one
  int64_t squares = 0;  // of a vector's lanes on both sides, transposed in registers
  int64_t tiles = 1;    // that threads share

  constexpr ConvWork& operator+=(const ConvWork& other) {
    steps += other.steps, blocks += other.blocks, sums += other.sums, runs += other.runs;
    vectors += other.vectors, strided += other.strided, squares += other.squares;
    return *this;
  }
  constexpr ConvWork operator*(int64_t times) const {
    return {steps * times,   blocks * times,  sums * times,    runs * times,
            vectors * times, strided * times, squares * times, tiles};
  }
};

constexpr int64_t ceilQuotient(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t vectorLanes(const ConvShape& s) { return 64 / sizeOf(computedType(s.type)); }
/// Vectors that so many lanes take.
constexpr int64_t vectorsOf(int64_t lanes, const ConvShape& s) { return ceilQuotient(lanes, vectorLanes(s)); }

//===----------------------------------------------------------------------===//
// Blocks of sums in registers
//===----------------------------------------------------------------------===//

/// Of the processors that it is measured on, each cycle begins two multiply-adds and two loads, and a sum is
/// ready for the next one after four.
constexpr int64_t blockSteps(int64_t sums, int64_t loads) { return std::max<int64_t>({sums, loads, 2 * 4}); }

/// Calls visit(extent, times) for the blocks of nearly equal extent, at most `most`, that `total` is cut
/// into.
template <typename Visit>
constexpr void forEvenBlocks(int64_t total, int64_t most, Visit visit) {
  const int64_t blocks = ceilQuotient(total, most), larger = total % blocks;
  if (larger > 0) visit(total / blocks + 1, larger);
  visit(total / blocks, blocks - larger);
}

/// Calls visit(extent, times) for the parts of `part` and what is left of `total`.
template <typename Visit>
constexpr void forParts(int64_t total, int64_t part, Visit visit) {
  if (total >= part) visit(part, total / part);
  if (total % part > 0) visit(total % part, 1);
}

struct ProductWork {
  int64_t blocks = 0, steps = 0;  // steps for each element of depth
};

/// rows x vectors of sums: up to four vectors wide and in blocks of nearly equal height
/// (runtime/host/conv/channel_kernels.h; LIBXSMM's are much the same).
constexpr ProductWork productWork(int64_t rows, int64_t vectors) {
  constexpr int64_t kMostSums = 24, kMostRows = 12;
  ProductWork work;
  for (int64_t width = 4; width > 0; width /= 2) {
    const int64_t times = vectors / width;
    if (times > 0)
      forEvenBlocks(rows, std::min(kMostSums / width, kMostRows), [&](int64_t height, int64_t blocks) {
        work.blocks += times * blocks;
        work.steps += times * blocks * blockSteps(height * width, height + width);
      });
    vectors -= times * width;
  }
  return work;
}

//===----------------------------------------------------------------------===//
// By patches
//===----------------------------------------------------------------------===//

/// Copies of all elements that windows read, or what adds them back, so many times.
constexpr ConvWork copyWork(const ConvShape& s, int64_t times) {
  constexpr int64_t kPixels = 64;  // of a block
  const int64_t rows = s.batch * s.groups * s.patchRows() * times, pixels = s.outputPixels();
  const int64_t blocks = ceilQuotient(pixels, kPixels);
  ConvWork work;
  if (s.height.stride == 1 && s.width.stride == 1 && s.width.output == s.width.input) {
    work.runs = rows * blocks;
    work.vectors = rows * (blocks * vectorsOf(std::min(kPixels, pixels), s) + 2 * s.height.output);
    return work;
  }
  work.runs = rows * (s.height.output + blocks - 1);
  if (s.width.stride == 1)
    work.vectors = rows * (s.height.output * vectorsOf(s.width.output, s) + blocks - 1);
  else
    work.strided = (s.taps() == 1 ? 2 : 1) * rows * pixels;  // no other tap has had the line
  return work;
}

constexpr ConvWork filterPatchesWork(const ConvShape& s) {
  const FilterGradientCut cut = cutFilterGradient(s);
  const int64_t outputs = s.groupOutputs(), inputs = s.patchRows(), pixels = s.batch * s.outputPixels();
  const int64_t rows = cut.exchanged ? outputs : inputs, columns = cut.exchanged ? inputs : outputs;
  ConvWork work;
  if (!s.isPointwise()) work = copyWork(s, cut.output_blocks);
  work.steps += s.groups * productWork(rows, vectorsOf(columns, s)).steps * pixels;
  // Rows in one set of the first-level cache, more than it has room for, come twice, or are copied.
  constexpr int64_t kSameSetBytes = 4096, kFewVectors = 2;
  const bool share_sets = s.outputPixels() * sizeOf(computedType(s.type)) % kSameSetBytes == 0;
  if (s.isPointwise() && share_sets && vectorsOf(columns, s) <= kFewVectors)
    work.vectors += s.groups * s.batch * rows * vectorsOf(s.outputPixels(), s);
  work.squares +=
      s.groups * cut.row_blocks * vectorsOf(columns, s) * s.batch * vectorsOf(s.outputPixels(), s);
  work.sums += 2 * s.groups * rows * vectorsOf(columns, s) * ceilQuotient(pixels, cut.pixels);
  work.vectors += 3 * cut.parts * vectorsOf(s.filterElements(), s);
  if (!cut.exchanged) work.strided += cut.parts * s.filterElements();
  work.tiles = cut.parts * s.groups * cut.row_blocks * cut.output_blocks;
  return work;
}

constexpr ConvWork patchesWork(const ConvShape& s) {
  constexpr int64_t kOutputs = 256, kDepth = 256, kRows = 144, kPixels = 64;  // of a tile
  if (s.kind == ConvKind::filter_gradient) return filterPatchesWork(s);
  const int64_t images = s.batch * s.groups, outputs = s.groupOutputs(), inputs = s.patchRows();
  const int64_t columns = vectorsOf(s.outputPixels(), s);
  ConvWork work;
  if (s.kind == ConvKind::forward) {
    if (!s.isPointwise()) work = copyWork(s, ceilQuotient(outputs, kOutputs));
    work.steps = images * productWork(outputs, columns).steps * inputs;
    work.sums = images * outputs * columns * ceilQuotient(inputs, kDepth);
    work.tiles = images * ceilQuotient(s.outputPixels(), kPixels);
    return work;
  }
  const int64_t tiles = ceilQuotient(s.groupInputs(), std::max<int64_t>(1, kRows / s.taps()));
  if (spreadsPixels(s)) {
    work.runs = images * s.groupInputs() * s.height.input;
    work.vectors = work.runs * vectorsOf(s.width.input, s);
  } else if (!s.isPointwise()) {
    work = copyWork(s, 1);
    work.vectors += images * (vectorsOf(s.groupInputs() * s.inputPixels(), s) + tiles * outputs * columns);
  }
  work.steps = images * productWork(inputs, columns).steps * outputs;
  work.sums = images * inputs * columns;
  work.tiles = images * tiles;
  return work;
}

//===----------------------------------------------------------------------===//
// By rows, by outputs and by images
//===----------------------------------------------------------------------===//

/// Images as the direct methods pack them.
constexpr ConvWork packedRowsWork(const ConvShape& s, const DirectCut& cut) {
  ConvWork work;
  work.runs = s.batch * s.in_channels * cut.strips * (cut.strip_rows + cut.more_rows) * cut.row_phases *
              cut.column_phases;
  if (cut.column_step == 1)
    work.vectors = work.runs * vectorsOf(cut.row_stride, s);
  else
    work.strided = work.runs * cut.row_stride;
  return work;
}

/// How much a load of lanes that begin anywhere costs, since many lie in two lines: 8 fifths.
constexpr int64_t unalignedLoads(int64_t loads) { return (8 * loads + 4) / 5; }

constexpr ConvWork rowsWork(const ConvShape& shape) {
  constexpr int64_t kMostOutputs = 8, kMostVectors = 4, kMostSums = 24;
  const ConvShape s = correlationOf(shape);
  const DirectCut cut = cutDirect(shape, ConvMethod::by_rows);
  const int64_t images = s.batch * s.groups, outputs = s.groupOutputs(), row = vectorsOf(s.width.output, s);
  const int64_t chunks = ceilQuotient(s.groupInputs(), cut.channels), vectors = cut.strip_rows * row;
  ConvWork work = packedRowsWork(s, cut);
  forEvenBlocks(outputs, kMostOutputs, [&](int64_t rows, int64_t times) {
    forEvenBlocks(vectors, std::min(kMostVectors, kMostSums / rows), [&](int64_t wide, int64_t blocks) {
      blocks *= times * images * cut.strips;
      work.steps += blocks * blockSteps(rows * wide, rows + unalignedLoads(wide)) * s.groupInputs() *
                    s.width.kernel / s.height.output * tapsMet(s.height);
      work.blocks += blocks * chunks;
    });
  });
  work.sums = images * cut.strips * vectors * outputs * (2 * chunks - 1);
  work.tiles = images * cut.strips;
  return work;
}

/// Of one tap: the few channels are packed, a chunk at a time, and meet the others where they lie.
constexpr ConvWork pixelRowsWork(const ConvShape& s) {
  constexpr int64_t kFew = 4, kMany = 6;
  const PixelRowsCut cut = cutPixelRows(s);
  const int64_t pictures = s.batch * s.groups, pixels = s.outputPixels();
  const int64_t vectors = (cut.runs - 1) * vectorsOf(cut.run, s) +
                          vectorsOf(pixels - (cut.runs - 1) * cut.run, s);  // of a channel
  const bool aligned = pixels % vectorLanes(s) == 0;
  ConvWork work;
  forEvenBlocks(cut.few, kFew, [&](int64_t few, int64_t few_blocks) {
    forEvenBlocks(cut.many, kMany, [&](int64_t many, int64_t many_blocks) {
      const int64_t blocks = few_blocks * many_blocks;
      work.steps +=
          pictures * vectors * blocks * blockSteps(few * many, few + (aligned ? many : unalignedLoads(many)));
      work.runs += pictures * cut.runs * blocks;
      work.blocks += cut.chunks * s.groups * blocks * (1 + many);
    });
  });
  work.vectors = pictures * cut.few * vectors + 3 * cut.parts * vectorsOf(s.filterElements(), s);
  work.tiles = cut.parts * s.groups;
  return work;
}

constexpr ConvWork filterRowsWork(const ConvShape& s) {
  constexpr int64_t kOutputs = 4, kTaps = 6;
  if (s.isPointwise()) return pixelRowsWork(s);
  const DirectCut cut = cutDirect(s, ConvMethod::by_rows);
  const int64_t rows = s.batch * s.groups * s.height.output, outputs = s.groupOutputs();
  ConvWork work = packedRowsWork(s, cut);
  forEvenBlocks(outputs, kOutputs, [&](int64_t at_once, int64_t output_blocks) {
    forEvenBlocks(s.patchRows(), kTaps, [&](int64_t taps, int64_t tap_blocks) {
      const int64_t blocks = output_blocks * tap_blocks;
      work.steps += rows * vectorsOf(s.width.output, s) * blocks *
                    blockSteps(at_once * taps, at_once + unalignedLoads(taps));
      work.runs += rows * blocks;
      work.blocks += cut.chunks * s.groups * blocks * (1 + taps);
    });
  });
  work.vectors += 3 * cut.parts * vectorsOf(s.filterElements(), s);
  work.tiles = cut.parts * s.groups;
  return work;
}

constexpr ConvWork outputsWork(const ConvShape& s) {
  constexpr int64_t kVectors = 2, kMostSums = 25, kMostRuns = 5;
  const DirectCut cut = cutDirect(s, ConvMethod::by_outputs);
  const int64_t images = s.batch * s.groups, runs = s.groupInputs() * s.height.kernel;
  const int64_t vectors = vectorsOf(s.groupOutputs(), s), taps = s.width.kernel;
  ConvWork work = packedRowsWork(s, cut);
  for (int64_t first = 0; first < vectors; first += kVectors) {
    const int64_t wide = std::min(kVectors, vectors - first);
    const int64_t most = std::clamp<int64_t>(kMostSums / (taps * wide), 1, kMostRuns);
    forEvenBlocks(runs, most, [&](int64_t at_once, int64_t blocks) {
      const int64_t rows = at_once * taps, chunks = cut.chunks * s.groups;
      work.steps += images * s.outputPixels() * blocks * blockSteps(rows * wide, rows + wide);
      work.runs += images * s.height.output * blocks;
      work.blocks += chunks * blocks;
      work.sums += chunks * blocks * rows * wide * vectorLanes(s);
    });
  }
  work.squares = images * vectors * vectorsOf(s.outputPixels(), s);
  work.vectors += 3 * cut.parts * vectorsOf(s.filterElements(), s);
  work.tiles = cut.parts * s.groups;
  return work;
}

/// Outputs of the next block of so many that are left (runtime/host/conv/image_correlate.h).
constexpr int64_t imageOutputs(int64_t rest) {
  return rest >= 8 ? 8 : rest >= 6 ? 6 : rest >= 4 ? 4 : rest >= 2 ? 2 : 1;
}

constexpr ConvWork imagesWork(const ConvShape& shape) {
  constexpr int64_t kMostSums = 24, kMostPixels = 6;
  const ConvShape s = correlationOf(shape);
  const ImagesCut cut = cutImages(s);
  const int64_t groups = cut.image_groups * s.groups,
                packed_rows = cut.strips * cut.packed_rows * s.groupInputs();
  ConvWork work;
  work.runs = groups * packed_rows;
  work.vectors = work.runs * (cut.packed_columns - cut.width);
  work.squares = work.runs * vectorsOf(cut.width, s) +
                 groups * s.groupOutputs() * cut.strips * vectorsOf(cut.strip_rows * s.width.output, s);
  for (int64_t output = 0; output < s.groupOutputs();) {
    const int64_t outputs =
        imageOutputs(std::min(cut.outputs - output % cut.outputs, s.groupOutputs() - output));
    const int64_t most = std::min(kMostSums / outputs, kMostPixels);
    const int64_t blocks = ceilQuotient(s.width.output, most), depth = tapsMet(s.height) * s.groupInputs();
    const int64_t taps = std::min(blocks * s.width.kernel, tapsMet(s.width));  // of all blocks of a row
    forEvenBlocks(s.width.output, most, [&](int64_t pixels, int64_t times) {
      work.steps += groups * depth * blockSteps(outputs * pixels, outputs + pixels) * taps * times / blocks;
    });
    work.runs += groups * tapsMet(s.height) * s.groupInputs() * blocks;
    work.blocks += groups * s.height.output * blocks;
    work.sums += groups * s.height.output * s.width.output * outputs;
    output += outputs;
  }
  work.tiles = groups * cut.strips;
  return work;
}

//===----------------------------------------------------------------------===//
// Depthwise
//===----------------------------------------------------------------------===//

/// Lanes run along a row; of x's cotangent by strides, every other window has a vector.
constexpr ConvWork depthwiseWork(const ConvShape& s) {
  const bool to_input = s.kind == ConvKind::input_gradient, to_filter = s.kind == ConvKind::filter_gradient;
  const int64_t columns = to_input ? s.width.input : s.width.output;
  const int64_t rows = s.batch * s.out_channels * s.height.output;
  const DepthwiseCut cut = cutDepthwise(s);
  ConvWork work;
  work.steps = rows * s.taps() * ceilQuotient(s.width.output * vectorsOf(columns, s), columns);
  work.sums = to_filter ? vectorsOf(cut.parts * s.filterElements(), s) : rows * vectorsOf(s.width.output, s);
  work.tiles = cut.blocks * (to_filter ? cut.parts : ceilQuotient(s.batch, cut.images));
  return work;
}

}  // namespace gpuc
