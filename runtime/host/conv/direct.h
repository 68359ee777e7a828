// Convolution without the matrix of patches: an image is packed once, padded, and lanes run along its rows.
#pragma once

#include <cstdint>

#include "runtime/host/matmul/element.h"

namespace gpuc {

/// Rows [first_row, first_row + rows) of the padded image, for every channel, packed as
/// [channel][row phase][column phase][row][column]: an element of phases (a, b) at (r, c) is the image's at
/// (r·row_step + a - top, c·column_step + b - left), or 0 outside. So each tap of a strided convolution reads
/// adjacent elements, too.
struct PackedStrip {
  int64_t channels;
  int64_t height, width;  // of the image
  int64_t top, left;      // padding; negative where the image begins before
  int64_t row_step, column_step;
  int64_t row_phases, column_phases;
  int64_t first_row, rows;  // of each phase
  int64_t row_stride;       // elements of a packed row, all of which are written

  int64_t phaseStride() const { return rows * row_stride; }
  int64_t channelStride() const { return row_phases * column_phases * phaseStride(); }
};

/// Output positions [begin, end) at which a tap of the kernel lies inside of the image.
struct ValidRange {
  int64_t begin, end;
};

/// What a tap adds to an element's place: in the packed strip, and in the filter.
struct DirectTap {
  int32_t image, filter;
};

/// result[m, (row, column)] = Σ over channels and taps of filter[m, channel, tap] · image[channel, (row,
/// column) + tap], added up in this order, each product by a fused multiply-add.
template <typename S>
struct Correlation {
  int64_t outputs, channels, rows, columns;
  const Computed<S>* image;
  int64_t image_channel, image_row;
  const Computed<S>* filter;
  int64_t filter_output, filter_channel;
  const DirectTap* taps;  // kernel rows of `taps_per_row`
  int64_t kernel_rows, taps_per_row;
  const ValidRange* valid_rows;  // of each kernel row: the image's rows of the result in which it meets more
  int64_t first_row;             // than padding; where the strip lies among them
  S* result;
  int64_t result_output;  // its rows lie one behind the other
};

/// sums[output, tap] (+)= Σ over images, rows and columns of dy[image, output, (row, column)] ·
/// image[(row, column) + tap]. By rows each lane of a vector adds up its own columns, image by image and row
/// by row; at the end the lanes are added up as a tree. By outputs each lane has an output of its own, and
/// adds up column by column as well; the taps come in runs that read adjacent elements.
template <typename T>
struct FilterProducts {
  int64_t images, outputs, rows, columns;
  const T* image;
  int64_t image_image, image_row;
  int64_t taps, run_taps;  // run_taps: of a run, by outputs (3, 5 or 7)
  const int32_t* places;   // of each tap, or of the first in each run
  const T* dy;  // by rows, which lie one behind the other; or, by outputs, whole vectors of outputs:
                // [image][row][column][output]
  int64_t dy_image, dy_output;  // by rows
  int64_t dy_pixel;             // by outputs
  T* sums;
  int64_t sums_output;
  bool accumulate;
};

/// S is the type in memory; all that is packed is in that of the arithmetic.
template <typename S>
struct TypedDirectKernels {
  void (*pack)(const PackedStrip& strip, const S* image, Computed<S>* packed);
  void (*correlate)(const Correlation<S>& c);
  void (*filterProducts)(const FilterProducts<Computed<S>>& p);
  void (*outputProducts)(const FilterProducts<Computed<S>>& p);
};

}  // namespace gpuc
