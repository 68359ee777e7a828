// What the host does for a convolution by Winograd's filtering, counted from the shape alone.
#pragma once

#include <algorithm>

#include "runtime/workspace/conv_winograd.h"
#include "runtime/workspace/conv_work.h"

namespace gpuc {

/// `vectors` counts what the transforms load and store of tiles, at most twice as much as they add.
constexpr ConvWork winogradWork(const ConvShape& shape) {
  const ConvShape s = correlationOf(shape);
  const WinogradCut cut = cutWinograd(shape);
  const bool to_filter = s.kind == ConvKind::filter_gradient;
  const int64_t all_tiles = s.batch * cut.rows * cut.columns, inputs = cut.vectors();
  const int64_t last = s.batch * cut.strips - (cut.parts - 1) * cut.part_strips;  // strips of the last part
  const int64_t last_tiles = std::min(cut.part_tiles, last * cut.strip_rows * cut.columns);
  ConvWork work;
  int64_t outputs = 0;  // vectors
  forParts(s.out_channels, cut.lanes, [&](int64_t lanes, int64_t times) {
    const int64_t vectors = vectorsOf(lanes, s);
    outputs += times * vectors;
    if (to_filter) {
      forParts(s.in_channels, WinogradCut::kVector, [&](int64_t rows, int64_t row_times) {
        const ProductWork product = productWork(rows, vectors);
        work.steps += kWinogradPlanes * times * row_times * product.steps * all_tiles;
        work.blocks += kWinogradPlanes * times * row_times * product.blocks * cut.rounds;
        work.sums += kWinogradPlanes * times * row_times * rows * vectors * (2 * cut.rounds - 1);
        work.runs += kWinogradPlanes * times * row_times * product.blocks * cut.parts;
      });
      return;
    }
    auto addPart = [&](int64_t tiles, int64_t parts) {
      const ProductWork product = productWork(tiles, vectors);
      work.steps += kWinogradPlanes * times * parts * product.steps * s.in_channels;
      work.blocks += kWinogradPlanes * times * parts * product.blocks;
      work.sums += kWinogradPlanes * times * parts * tiles * vectors;
      work.runs += kWinogradPlanes * times * parts * product.blocks * inputs;
    };
    addPart(cut.part_tiles, cut.parts - 1);
    addPart(last_tiles, 1);
  });
  constexpr int64_t kOfSource = 28, kOfResult = 22, kOfFilter = 25;  // vectors of a tile, and of a filter
  const int64_t filters = to_filter || cut.turns == 1 ? 1 : cut.rounds, sources = to_filter ? cut.turns : 1;
  work.vectors = all_tiles * (kOfSource * inputs * sources + kOfResult * outputs) +
                 kOfFilter * s.in_channels * outputs * filters;
  if (to_filter) work.vectors += cut.turns * cut.splits * vectorsOf(cut.filterElements(), s);
  const int64_t strips = s.batch * cut.strips, pixels = 2 * cut.strip_rows * s.width.output;
  const int64_t read = (2 * cut.strip_rows + 2) * s.width.input;  // of a strip
  const bool flipped = s.kind == ConvKind::input_gradient;
  work.squares = strips * (inputs * sources * vectorsOf(std::min(read, s.inputPixels()), s) +
                           outputs * vectorsOf(std::min(pixels, s.outputPixels()), s)) +
                 outputs * filters * (flipped ? s.in_channels : vectorsOf(s.in_channels * s.taps(), s));
  work.tiles = to_filter ? kWinogradPlanes * cut.blocks : cut.parts * cut.blocks;
  return work;
}

}  // namespace gpuc
