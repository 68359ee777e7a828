// A direct problem's packed strips.
#pragma once

#include <algorithm>

#include "runtime/host/conv/patch_block.h"

namespace gpuc {

/// A strip of one image's rows, of so many channels, as the problem's tap places want it.
inline PackedStrip packedStrip(const ConvProblem& problem, int64_t channels, int64_t first_row) {
  const ConvShape& c = problem.correlation;
  const DirectCut& cut = problem.direct.cut;
  return {.channels = channels,
          .height = c.height.input,
          .width = c.width.input,
          .top = c.height.low,
          .left = c.width.low,
          .row_step = c.height.stride,
          .column_step = cut.column_step,
          .row_phases = cut.row_phases,
          .column_phases = cut.column_phases,
          .first_row = first_row,
          .rows = cut.strip_rows + cut.more_rows,
          .row_stride = cut.row_stride};
}

/// Images [first, end), of each the rows of one strip: what is packed at once.
struct DirectChunk {
  int64_t first, end;
  int64_t row, rows;

  DirectChunk(const ConvProblem& problem, int64_t index) {
    const DirectCut& cut = problem.direct.cut;
    first = index / cut.strips * cut.images;
    end = std::min(first + cut.images, problem.shape.batch);
    row = index % cut.strips * cut.strip_rows;
    rows = std::min(cut.strip_rows, problem.correlation.height.output - row);
  }
};

/// Channels of a group that are packed at once.
struct DirectChannels {
  int64_t first, count;

  DirectChannels(const ConvProblem& problem, int64_t first_channel)
      : first(first_channel),
        count(std::min(problem.direct.cut.channels, problem.correlation.groupInputs() - first_channel)) {}
};

/// Elements between one packed image's strip and the next.
inline int64_t imageElements(const ConvProblem& problem) {
  return problem.direct.cut.packedElements(problem.direct.cut.strip_rows);
}

/// Packs some channels of a chunk's images, one behind the other; x is the whole input.
template <typename S>
void packChunk(const ConvProblem& problem, const DirectChunk& chunk, const DirectChannels& channels,
               const S* x, int64_t group, Computed<S>* packed) {
  const PackedStrip strip = packedStrip(problem, channels.count, chunk.row);
  x += channels.first * problem.shape.inputPixels();
  for (int64_t image = chunk.first; image < chunk.end; ++image)
    problem.patch_kernels->of<S>().direct.pack(strip, x + inputOffset(problem.shape, image, group),
                                               packed + (image - chunk.first) * imageElements(problem));
}

}  // namespace gpuc
