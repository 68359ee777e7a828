// Convolutions of 3x3 taps by Winograd's minimal filtering: which shapes it can be taken for, and how those
// are cut.
//
// Four results of 2x2 read a tile of 4x4 elements. Their 36 products per channel become 16: of the elements
// of B^T·d·B and of G·g·G^T, which A^T·…·A brings back (S. Winograd, Arithmetic Complexity of Computations,
// 1980; A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016: F(2x2, 3x3)). For each
// of the 16 places that is a product of matrices: tiles x channels by channels x results. The filter's
// gradient is the adjoint of the same sums, and takes 16 products, too. Sums and differences alone are taken
// beside, and halves; docs/numerics.md has the error.
#pragma once

#include <algorithm>

#include "runtime/workspace/conv_channels.h"
#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// Elements of a tile of 4x4, each of which has a plane of its own.
inline constexpr int64_t kWinogradPlanes = 16;

/// The most tiles of a product whose sums are 256 bytes wide.
inline constexpr int64_t kWinogradTiles = 64;

/// The most channels on either side.
inline constexpr int64_t kMostWinogradChannels = 2048;

/// What a correlation reads is its source. Tiles of a part lie one behind the other, row by row.
struct WinogradCut {
  int64_t rows, columns;        // tiles of a picture
  int64_t strip_rows, strips;   // rows of them that are transformed at once; the last strip may have fewer
  int64_t part_strips, parts;   // strips of a product, over all pictures; the last part may have fewer
  int64_t part_tiles;           // the most that a part has
  int64_t channels;             // of the source, in whole vectors of 64 bytes
  int64_t lanes, blocks;        // channels of the result that are computed at once; how many times
  int64_t turn_blocks, turns;   // blocks whose filters are in planes at once, in one turn after another
  int64_t rounds, round_parts;  // parts that are transformed at once, in one round after another
  int64_t splits;               // of a filter's gradient: sums over some parts of each round, then added up

  constexpr int64_t vectors() const { return channels / kVector; }
  constexpr int64_t partsOf(int64_t round) const {
    return std::min(round_parts, parts - round * round_parts);
  }
  // Elements of a plane, with a line more: else those of one tile would lie in one set of the cache.
  constexpr int64_t sourcePlane() const { return channels * part_tiles + kVector; }
  constexpr int64_t resultPlane() const { return lanes * part_tiles + kVector; }
  constexpr int64_t filterPlane() const { return lanes * channels + kVector; }
  /// Of a turn.
  constexpr int64_t filterElements() const { return turn_blocks * kWinogradPlanes * filterPlane(); }
  /// Of a part: the source, and of a filter's gradient a turn's blocks of y's cotangent.
  constexpr int64_t sourceElements() const { return kWinogradPlanes * sourcePlane(); }
  constexpr int64_t cotangentElements() const { return turn_blocks * kWinogradPlanes * resultPlane(); }

  static constexpr int64_t kVector = 16;  // of f32
};

/// The correlation that is computed, of a filter's gradient the one whose filter it is.
constexpr WinogradCut cutWinograd(const ConvShape& shape) {
  constexpr int64_t kVector = WinogradCut::kVector, kSplitBytes = 5 << 18, kTurnBytes = 5 << 20,
                    kLeastRoundBytes = 1 << 18;
  const ConvShape s = correlationOf(shape);
  const bool to_filter = s.kind == ConvKind::filter_gradient;
  WinogradCut cut{};
  cut.rows = (s.height.output + 1) / 2, cut.columns = (s.width.output + 1) / 2;
  const int64_t strip_rows = std::clamp<int64_t>(kWinogradTiles / cut.columns, 1, cut.rows);
  cut.strips = (cut.rows + strip_rows - 1) / strip_rows;
  cut.strip_rows = (cut.rows + cut.strips - 1) / cut.strips;
  cut.strips = (cut.rows + cut.strip_rows - 1) / cut.strip_rows;
  const int64_t strips = s.batch * cut.strips;
  const int64_t fitting = cut.strips > 1 ? 1 : kWinogradTiles / (cut.rows * cut.columns);
  cut.part_strips = std::clamp<int64_t>(fitting, 1, strips);
  cut.parts = (strips + cut.part_strips - 1) / cut.part_strips;
  cut.part_strips = (strips + cut.parts - 1) / cut.parts;
  cut.parts = (strips + cut.part_strips - 1) / cut.part_strips;
  cut.part_tiles = cut.part_strips * cut.strip_rows * cut.columns;
  cut.channels = ceilToMultiple(s.in_channels, kVector);
  const int64_t wide = (cut.part_tiles + kWinogradTiles - 1) / kWinogradTiles;  // long rows: fewer lanes
  const int64_t most = wide <= 1 ? 64 : wide <= 2 ? 32 : 16;
  cut.lanes = ceilToMultiple(evenConvPart(s.out_channels, most, kVector), kVector);
  cut.blocks = (s.out_channels + cut.lanes - 1) / cut.lanes;
  const int64_t filter = kWinogradPlanes * cut.filterPlane() * 4;
  cut.turn_blocks = evenConvPart(cut.blocks, std::max<int64_t>(1, kTurnBytes / filter), 1);
  cut.turns = (cut.blocks + cut.turn_blocks - 1) / cut.turn_blocks;
  const int64_t part = cut.sourceElements() + (to_filter ? cut.cotangentElements() : 0);
  // Of small pictures about as much as they take themselves.
  const int64_t read =
      s.batch * (s.in_channels * s.inputPixels() + (to_filter ? s.out_channels * s.outputPixels() : 0));
  const int64_t round = std::clamp<int64_t>(read * 4, kLeastRoundBytes, kChannelsRoundBytes);
  const int64_t at_once = std::clamp<int64_t>(round / (part * 4), 1, cut.parts);
  cut.rounds = (cut.parts + at_once - 1) / at_once;
  // As many parts for each of two threads.
  cut.round_parts = (cut.parts + cut.rounds - 1) / cut.rounds;
  if (cut.round_parts < cut.parts) cut.round_parts = ceilToMultiple(cut.round_parts, 2);
  cut.rounds = (cut.parts + cut.round_parts - 1) / cut.round_parts;
  // Where few channels meet each tile, no thread is to read what another has transformed.
  const bool small = cut.filterElements() * 4 <= kSplitBytes;
  cut.splits = to_filter && small ? std::min<int64_t>(2, cut.round_parts) : 1;
  return cut;
}

/// Elements before what a round transforms.
constexpr int64_t winogradFilters(const WinogradCut& cut) { return cut.splits * cut.filterElements(); }

/// The filter, or the sums of its gradient, in planes, and what a round transforms.
constexpr int64_t winogradWorkspaceElements(const ConvShape& s) {
  const WinogradCut cut = cutWinograd(s);
  const bool to_filter = s.kind == ConvKind::filter_gradient;
  return winogradFilters(cut) +
         cut.round_parts * (cut.sourceElements() + (to_filter ? cut.cotangentElements() : 0));
}

/// Multiply-adds of any of the three convolutions: 16 for four results of a channel.
constexpr int64_t winogradProducts(const ConvShape& shape) {
  const ConvShape s = correlationOf(shape);
  return 4 * s.batch * s.outputPixels() * s.in_channels * s.out_channels;
}

/// Whether each tap meets the picture with two thirds of the windows at least. One that meets few would have
/// a gradient small beside the sums that it is made of, and of one that meets none it is 0 exactly; nor would
/// fewer products be saved.
constexpr bool meetsMostWindows(const ConvAxis& axis) {
  return axis.output >= 3 * std::max(axis.low, axis.high);
}

/// Whether sums are long enough: of few pixels many elements of a filter's gradient are 0 exactly, since all
/// their products are, and stay so by products of pixels themselves; here they would be what is rounded, of
/// which Adam makes steps. Nor is much gained.
constexpr bool hasPixelsForWinograd(const ConvShape& shape) {
  constexpr int64_t kLeastPixels = 384;
  return shape.batch * shape.outputPixels() >= kLeastPixels;
}

/// Whether it can be cut so: in f32 alone, since who asks for f64 asks for accuracy.
constexpr bool fitsWinograd(const ConvShape& shape) {
  constexpr int64_t kMostColumns = 4 * kWinogradTiles, kMostRows = 1 << 14;
  if (computedType(shape.type) != DataType::f32 || shape.groups != 1) return false;
  if (std::max(shape.in_channels, shape.out_channels) > kMostWinogradChannels) return false;
  if (!meetsMostWindows(shape.height) || !meetsMostWindows(shape.width)) return false;
  const ConvShape s = correlationOf(shape);
  auto fits = [](const ConvAxis& axis) {
    return axis.kernel == 3 && axis.stride == 1 && axis.dilation == 1 && axis.low >= 0 && axis.low <= 2;
  };
  return fits(s.height) && fits(s.width) && (s.width.output + 1) / 2 <= kMostColumns &&
         s.height.output <= kMostRows;
}

}  // namespace gpuc
