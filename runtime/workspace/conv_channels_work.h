// What the host does for a convolution by channels, counted from the shape alone.
#pragma once

#include <algorithm>

#include "runtime/workspace/conv_channels.h"
#include "runtime/workspace/conv_work.h"

namespace gpuc {

/// Calls visit(columns, taps) for each run of adjoining columns of the result that meet the same taps of a
/// row of the filter; `taps` is how many.
template <typename Visit>
constexpr void forChannelRuns(const ConvShape& s, Visit visit) {
  const bool to_input = s.kind == ConvKind::input_gradient;
  const int64_t phases = to_input ? s.width.stride : 1, extent = to_input ? s.width.input : s.width.output;
  for (int64_t phase = 0; phase < phases; ++phase) {
    int64_t columns = 0, taps = 0;
    uint64_t last = 0;
    for (int64_t column = phase; column < extent; column += phases) {
      uint64_t met = 0;
      int64_t count = 0;
      for (int64_t tap = 0; tap < s.width.kernel; ++tap)
        if (sourceOf(s.width, s.kind, column, tap) >= 0) met |= uint64_t{1} << tap, ++count;
      if (columns > 0 && met != last) visit(columns, taps), columns = 0;
      last = met, taps = count, ++columns;
    }
    if (columns > 0) visit(columns, taps);
  }
}

/// Forward and the input's gradient: so many channels of the result.
constexpr ConvWork channelsBlockWork(const ConvShape& s, const ChannelsCut& cut, int64_t results,
                                     int64_t depth) {
  const bool to_input = s.kind == ConvKind::input_gradient;
  const int64_t rows = to_input ? s.height.input : s.height.output;
  const int64_t columns = to_input ? s.width.input : s.width.output;
  const int64_t parts = cut.parts * cut.groups, vectors = vectorsOf(results, s);
  const int64_t chunks = ceilQuotient(depth, cut.chunk), row_taps = tapsMet(s.height);
  ConvWork work;
  forChannelRuns(s, [&](int64_t count, int64_t taps) {
    const ProductWork product = productWork(count * cut.images, vectors);
    work.steps += parts * product.steps * depth * row_taps * taps;
    work.blocks += parts * product.blocks * rows * chunks;
    work.sums += parts * count * cut.images * vectors * rows * (2 * chunks - 1);
    work.runs += parts * product.blocks * row_taps * taps * vectorsOf(depth, s);
  });
  const int64_t filter = !to_input       ? vectorsOf(depth * s.taps(), s)
                         : s.taps() == 1 ? vectorsOf(depth, s)
                                         : depth * vectorsOf(s.taps(), s);
  work.squares =
      vectors * (parts * cut.strips * filter +
                 s.batch * cut.groups * cut.strips * vectorsOf(ceilQuotient(rows, cut.strips) * columns, s));
  return work;
}

/// The filter's gradient: so many outputs and inputs.
constexpr ConvWork channelsFilterBlockWork(const ConvShape& s, const ChannelsCut& cut, int64_t outputs,
                                           int64_t inputs) {
  constexpr int64_t kWantedDepth = 128;
  const int64_t parts = cut.parts * cut.groups, vectors = vectorsOf(outputs, s);
  const int64_t pieces = ceilQuotient(s.outputPixels() * cut.images, kWantedDepth),
                row_taps = tapsMet(s.height);
  const ProductWork product = productWork(inputs, vectors);
  ConvWork work;
  forChannelRuns(s, [&](int64_t count, int64_t taps) {
    work.steps += parts * product.steps * count * cut.images * row_taps * taps;
    work.runs += parts * product.blocks * row_taps * taps;
  });
  work.blocks = parts * product.blocks * pieces * s.taps();
  work.sums = 2 * parts * inputs * vectors * pieces * s.taps();
  work.squares = cut.groups * vectors * vectorsOf(inputs * s.taps(), s);
  if (cut.splits > 1) work.vectors = 3 * cut.groups * cut.splits * inputs * s.taps() * vectors;
  return work;
}

constexpr ConvWork channelsWork(const ConvShape& s) {
  const ChannelsCut cut = cutChannels(s);
  const bool to_filter = s.kind == ConvKind::filter_gradient, to_input = s.kind == ConvKind::input_gradient;
  const int64_t inputs = cut.joined * s.groupInputs(), outputs = cut.joined * s.groupOutputs();
  const int64_t results = to_input ? inputs : outputs, images = s.batch * cut.groups;
  const int64_t depth = cut.joined > 1 ? cut.met : to_input ? outputs : inputs;
  ConvWork work;
  forParts(results, cut.lanes, [&](int64_t lanes, int64_t times) {
    if (!to_filter) work += channelsBlockWork(s, cut, lanes, depth) * times;
    if (to_filter)
      forParts(depth, cut.met, [&](int64_t met, int64_t blocks) {
        work += channelsFilterBlockWork(s, cut, lanes, met) * (times * blocks);
      });
  });
  if (!to_input) work.squares += images * vectorsOf(inputs, s) * vectorsOf(s.inputPixels(), s);
  if (s.kind != ConvKind::forward)
    work.squares += images * vectorsOf(outputs, s) * vectorsOf(s.outputPixels(), s);
  work.vectors += cut.rounds * vectorsOf(channelsPackedElements(s), s);
  work.tiles = cut.groups * cut.blocks *
               (to_filter ? cut.input_blocks * cut.splits * cut.rounds : cut.parts * cut.strips);
  return work;
}

}  // namespace gpuc
