// How a filter's gradient comes on the host: in which tiles, of each of which the sums are made at once. So a
// weight's update may take a tile while it is in the cache, and its squares may be added up.
#pragma once

#include <optional>

#include "runtime/workspace/conv_workspace.h"

namespace gpuc {

/// The gradient as a matrix of outputs x elements of a patch, as it lies. Tiles count along columns first.
struct GradientTiles {
  int64_t rows = 0, columns = 0;
  int64_t tile_rows = 0, tile_columns = 0;  // the last ones may be cut short
  int64_t stride = 0;                       // elements between the rows of a tile that is handed on

  constexpr int64_t columnTiles() const { return (columns + tile_columns - 1) / tile_columns; }
  constexpr int64_t count() const { return (rows + tile_rows - 1) / tile_rows * columnTiles(); }
  /// Of the tile that begins there.
  constexpr int64_t number(int64_t row, int64_t column) const {
    return row / tile_rows * columnTiles() + column / tile_columns;
  }
};

/// The tiles of a filter's gradient; none of another convolution, nor of a type other than f32, nor where the
/// direct methods and depthwise add up where it lies, nor where a tile would lie in two groups.
constexpr std::optional<GradientTiles> convGradientTiles(const ConvShape& s, ConvMethod method) {
  if (s.kind != ConvKind::filter_gradient || s.type != DataType::f32) return std::nullopt;
  if (method == ConvMethod::subsampled) {
    const ConvShape left = subsampledShape(s);
    return convGradientTiles(left, convMethod(left));
  }
  GradientTiles tiles;
  int64_t of_groups = 1;  // that a tile may have
  tiles.rows = s.out_channels, tiles.columns = s.patchRows();
  if (method == ConvMethod::by_channels) {
    const ChannelsCut cut = cutChannels(s);
    tiles.tile_rows = cut.lanes, tiles.tile_columns = cut.met * s.taps();
    of_groups = cut.joined;
  } else if (method == ConvMethod::winograd) {
    tiles.tile_rows = cutWinograd(s).lanes, tiles.tile_columns = WinogradCut::kVector * s.taps();
  } else if (convFilterParts(s, method) > 0) {  // whole rows, which adjoin
    tiles.tile_rows = convSumElements(s) / s.patchRows(), tiles.tile_columns = s.patchRows();
    tiles.stride = s.patchRows();
    return tiles.tile_rows > 0 ? std::optional(tiles) : std::nullopt;
  } else if (method == ConvMethod::patches) {
    const FilterGradientCut cut = cutFilterGradient(s);
    tiles.tile_rows = cut.exchanged ? cut.rows : cut.outputs;
    tiles.tile_columns = cut.exchanged ? cut.outputs : cut.rows;
  } else {
    return std::nullopt;
  }
  tiles.tile_rows = std::min(tiles.tile_rows, of_groups * s.groupOutputs());
  tiles.tile_columns = std::min(tiles.tile_columns, s.patchRows());
  tiles.stride = ceilToMultiple(tiles.tile_columns, 16);
  const bool across_groups = s.groups > 1 && of_groups * s.groupOutputs() % tiles.tile_rows != 0;
  return across_groups ? std::nullopt : std::optional(tiles);
}
constexpr std::optional<GradientTiles> convGradientTiles(const ConvShape& shape) {
  return convGradientTiles(shape, convMethod(shape));
}

}  // namespace gpuc
