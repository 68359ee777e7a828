// Where strips and parts of tiles lie (runtime/workspace/conv_winograd.h).
#pragma once

#include <algorithm>

#include "runtime/host/conv/problem.h"

namespace gpuc {

/// Rows of tiles of one picture.
struct WinogradStrip {
  int64_t image, row, rows;
  int64_t first_tile;  // in its part
};

/// Calls visit for the strips of a part; of one behind the last there are none.
template <typename Visit>
void forEachStrip(const WinogradCut& cut, int64_t batch, int64_t part, Visit visit) {
  const int64_t first = part * cut.part_strips;
  const int64_t end = std::min(first + cut.part_strips, batch * cut.strips);
  for (int64_t strip = first, tile = 0; strip < end; ++strip) {
    const int64_t row = strip % cut.strips * cut.strip_rows;
    const int64_t rows = std::min(cut.strip_rows, cut.rows - row);
    visit(WinogradStrip{strip / cut.strips, row, rows, tile});
    tile += rows * cut.columns;
  }
}

inline int64_t tilesOf(const WinogradCut& cut, int64_t batch, int64_t part) {
  int64_t tiles = 0;
  forEachStrip(cut, batch, part, [&](const WinogradStrip& strip) { tiles += strip.rows * cut.columns; });
  return tiles;
}

/// Channels of a block of the result, and the lanes that they have; none of one behind the last, which the
/// last turn may have.
struct WinogradBlock {
  int64_t place;  // in its turn
  int64_t first, results, lanes;

  WinogradBlock(const WinogradCut& cut, int64_t turn, int64_t at, int64_t all)
      : place(at),
        first((turn * cut.turn_blocks + at) * cut.lanes),
        results(std::clamp<int64_t>(all - first, 0, cut.lanes)),
        lanes(ceilToMultiple(results, WinogradCut::kVector)) {}
};

/// Tiles of a block in a part count a turn's blocks first, then a round's parts, then rounds, then turns.
struct WinogradPlace {
  int64_t block, part, turn;  // the block in its turn

  WinogradPlace(const WinogradCut& cut, int64_t tile)
      : block(tile % cut.turn_blocks),
        part(tile / cut.turn_blocks % (cut.round_parts * cut.rounds)),
        turn(tile / (cut.turn_blocks * cut.round_parts * cut.rounds)) {}
};

/// The most elements of the pixels that a strip of y has, or its cotangent.
inline constexpr int64_t kWinogradPixels = 4 * kWinogradTiles * 64;

}  // namespace gpuc
