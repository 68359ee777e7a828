// The kernels of convolution that are compiled for each width of vectors: on the matrix of patches, a block
// at a time; on an image that is packed once, padded, with lanes along its rows or along the outputs; with an
// image in each lane, which means full vectors and no waste at the edges, whatever the extents; and with
// channels side by side.
#pragma once

#include <cstdint>

#include "runtime/host/conv/depthwise/plane_kernels.h"
#include "runtime/host/conv/winograd/winograd.h"
#include "runtime/host/matmul/kernel_table.h"
#include "runtime/workspace/conv_shape.h"

namespace gpuc {

//===----------------------------------------------------------------------===//
// A packed image
//===----------------------------------------------------------------------===//

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
/// column) + tap], added up in this order, each product by a fused multiply-add. Of some channels at a time,
/// whose sums are added to those of the channels before.
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
  bool begins, ends;
  Computed<S>* sums;    // between some channels and the next; the result, where that is of the same type
  int64_t sums_output;  // its rows lie one behind the other
  S* result;
  int64_t result_output;  // as do its rows
};

/// sums[output, tap] (+)= Σ over images, rows and columns of dy[image, output, (row, column)] ·
/// image[(row, column · column_step) + tap]. By rows each lane of a vector adds up its own columns, image by
/// image and row by row; at the end the lanes are added up as a tree. By outputs each lane has an output of
/// its own, and adds up column by column as well; the taps come in runs that read adjacent elements.
template <typename T>
struct FilterProducts {
  int64_t images, outputs, rows, columns;
  const T* image;
  int64_t image_image, image_row;
  int64_t column_step;     // by rows 1
  int64_t taps, run_taps;  // run_taps: of a run, by outputs (hasRunsOf in runtime/workspace/conv_method.h)
  const int32_t* places;   // of each tap, or of the first in each run
  const T* dy;  // by rows, which lie one behind the other; or, by outputs, whole vectors of outputs:
                // [image][row][column][output]
  int64_t dy_image, dy_output;  // by rows
  int64_t dy_pixel;             // by outputs
  T* sums;
  int64_t sums_output, sums_tap;  // by outputs taps lie side by side
  bool accumulate;
  bool asks;      // by rows, of one tap and one image: whether lines of the next taps' rows are asked for
  const T* next;  // likewise: where taps begin that come after these; null: none
};

/// S is the type in memory; all that is packed is in that of the arithmetic.
template <typename S>
struct TypedDirectKernels {
  void (*pack)(const PackedStrip& strip, const S* image, Computed<S>* packed);
  void (*correlate)(const Correlation<S>& c);
  void (*filterProducts)(const FilterProducts<Computed<S>>& p);
  void (*outputProducts)(const FilterProducts<Computed<S>>& p);
};

//===----------------------------------------------------------------------===//
// An image in each lane
//===----------------------------------------------------------------------===//

/// A pixel of packed images: the same element of so many images, 64 bytes.
template <typename T>
inline constexpr int64_t kPackedImages = 64 / static_cast<int64_t>(sizeof(T));

/// packed[channel][row][column][image] = image[channel][row][column - left], 0 beside the width and for
/// images that there are not.
struct PackedImages {
  int64_t images, image_stride;  // at most kPackedImages
  int64_t channels, channel_stride;
  int64_t rows, row_stride;
  int64_t left, width, columns;
  int64_t packed_rows;  // room for each channel
};

/// sums[output][(row, column)][image] = Σ over channels and taps (i, j) of filter[output][channel][i][j] ·
/// packed[channel][row · row_step + i · row_dilation - top][column · column_step + j · column_dilation],
/// added up in this order, each product by a fused multiply-add. Taps that lie above or below the image are
/// left out, and those that meet nothing but padding beside it may be.
template <typename T>
struct ImageCorrelation {
  int64_t outputs, channels, rows, columns;
  int64_t kernel_rows, kernel_columns;
  int64_t row_step, column_step, row_dilation, column_dilation;
  int64_t top;                // of the first row, to the first packed row; may be negative
  int64_t image_rows;         // packed, of the image alone
  int64_t left, image_width;  // packed columns before the image, and of it
  const T* packed;
  int64_t packed_row, packed_channel;
  const T* filter;  // that of tap (0, 0)
  int64_t filter_output, filter_channel;
  bool flipped;  // filter's taps run backwards from there
  T* sums;
};

/// images[image][output][pixel] = sums[output][pixel][image].
struct UnpackedImages {
  int64_t images, image_stride;
  int64_t outputs, output_stride;
  int64_t pixels;
};

template <typename S>
struct TypedImageKernels {
  void (*pack)(const PackedImages& p, const S* images, Computed<S>* packed);
  void (*correlate)(const ImageCorrelation<Computed<S>>& c);
  void (*unpack)(const UnpackedImages& u, const Computed<S>* sums, S* images);
};

//===----------------------------------------------------------------------===//
// Channels side by side
//===----------------------------------------------------------------------===//

/// A run of products: where its terms begin in a and in b, and how many there are.
struct ProductRun {
  int64_t a, b, depth;
};

/// A pixel's channels that lie side by side where their product is along terms.
inline constexpr int64_t kPixelBytes = 64;

/// sums[row, column] (+)= Σ over runs and their terms d of a[run.a, row, d] · b[run.b + d · b_step + column],
/// added up in this order, each product by a fused multiply-add. Columns are whole vectors of the table's
/// width. Of a's terms and rows the ones lie side by side, and the others a_step apart, rows kPixelBytes.
template <typename T>
struct PixelProducts {
  int64_t rows, columns;
  int64_t group;  // channels of a group, where columns are groups side by side
  const ProductRun* terms;
  int64_t term_count;
  const T* a;
  int64_t a_step;
  const T* b;
  int64_t b_step;
  T* sums;
  int64_t sums_row;
  bool accumulate;
};

/// packed[places[pixel]][channel] = picture[channel][pixel], where a place is negative nowhere; with zeros up
/// to packed_channels, which are whole vectors of the widest kind.
template <typename S>
struct PackedPixels {
  int64_t channels, packed_channels, pixels;
  const S* picture;
  int64_t channel_stride;
  const int32_t* places;
  Computed<S>* packed;
  int64_t pixel_stride;
};

/// picture[channel][pixel] = sums[places[pixel] - first_place][channel]; without places, those of the pixels
/// in order. Sums are read up to whole vectors.
template <typename S>
struct UnpackedPixels {
  int64_t channels, pixels;
  const Computed<S>* sums;
  int64_t pixel_stride;
  const int32_t* places;
  int64_t first_place;
  S* picture;
  int64_t channel_stride;
};

/// Of groups side by side a column meets the terms of its own group alone, which begin at g = column / group
/// · group; runs have `group` terms each along terms, and along rows a row of sums is one of those:
///   sums[row, column] (+)= Σ over runs and i < group of a[run.a + row · a_step + g + i] · b[run.b + i ·
///   b_step
///     + column];
///   sums[i, column] (+)= Σ over runs and their d of a[run.a + d · a_step + g + i] · b[run.b + d · b_step +
///     column], of a group of four d that are even and odd in two sums.
template <typename S>
struct TypedChannelKernels {
  void (*pack)(const PackedPixels<S>& p);
  void (*termsAlong)(const PixelProducts<Computed<S>>& p);  // a row's terms lie side by side
  void (*rowsAlong)(const PixelProducts<Computed<S>>& p);   // the rows of a term do
  void (*groupTermsAlong)(const PixelProducts<Computed<S>>& p);
  void (*groupRowsAlong)(const PixelProducts<Computed<S>>& p);
  void (*unpack)(const UnpackedPixels<S>& p);
};

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

/// to[row][column] = from[row][column], of up to four vectors of columns; rows of `to` have room for four.
template <typename T>
struct PackedAhead {
  int64_t rows, columns;
  const T* from;
  int64_t from_row;
  T* to;
};

/// result[row, column] (+)= Σ over d of w[row, d] · packed[d, column], added up in this order, each product
/// by a fused multiply-add, of up to four vectors of columns. Of w's rows and terms the ones lie side by
/// side, and the others w_step apart. Meanwhile `next` is packed, of which there may be no rows.
template <typename T>
struct PointwiseProducts {
  int64_t rows, columns, depth;
  const T* w;
  int64_t w_step;
  const T* packed;
  T* result;
  int64_t result_row;
  bool accumulate;
  PackedAhead<T> next;
};

/// None, where vectors have fewer than 64 bytes.
template <typename T>
struct TypedPointwiseKernels {
  void (*pack)(const PackedAhead<T>& p);
  void (*termsAlong)(const PointwiseProducts<T>& p);  // a row's terms lie side by side
  void (*rowsAlong)(const PointwiseProducts<T>& p);   // the rows of a term do
};

/// result[row, column] = Σ over d of w[d, row] · source[d, column], added up in this order, each product by a
/// fused multiply-add. w's rows, of which there are as many as the kernel is for, lie side by side; `rows` of
/// them are stored. Meanwhile what lies like source at `next` is asked for; null: nothing.
template <typename T>
struct FewProducts {
  int64_t rows, columns, depth;
  const T* w;
  const T* source;
  int64_t source_row;
  T* result;
  int64_t result_row;
  const T* next;
};

/// For 4, 8, 12 and 16 rows; none, where vectors have fewer than 64 bytes.
template <typename T>
struct TypedFewKernels {
  void (*byRows[4])(const FewProducts<T>& p);
};

//===----------------------------------------------------------------------===//
// Patches
//===----------------------------------------------------------------------===//

/// A block of the matrix of patches of one image and one group. Its rows are (channel, i, j), one for each
/// element that an output reads; its columns are the output's pixels. Element [(c, i, j), (p, q)] is the
/// image's element [c, p·sh - top + i·dh, q·sw - left + j·dw], or 0 outside.
struct PatchBlock {
  const ConvAxis* height;
  const ConvAxis* width;
  const ValidRange* valid_rows;     // [kernel height], of p
  const ValidRange* valid_columns;  // [kernel width], of q
  int64_t row, rows;
  int64_t pixel, pixels;
  int64_t stride;  // elements from one row of the block to the next
};

/// result[channel][row · row_step][column · column_step] = values[channel][row][column], and zeros elsewhere.
template <typename S>
struct SpreadPixels {
  int64_t channels, rows, columns;
  const S* values;  // a channel's rows lie one behind the other
  int64_t values_channel;
  S* result;
  int64_t result_channel, result_rows, result_columns;
  int64_t row_step, column_step;
};

/// values[channel][i] = picture[channel][row][column · column_step], where i counts `pixels` pixels from
/// `pixel` on, in rows of `columns`, which are picture_row apart in the picture. T is S, or the type of the
/// arithmetic.
template <typename S, typename T>
struct TakenPixels {
  int64_t channels, pixel, pixels, columns;
  const S* picture;
  int64_t picture_channel, picture_row;
  int64_t column_step;
  T* values;
  int64_t values_channel;
};

/// values[channel][i][j][row][column] = picture[channel][row · window_rows + i][column · window_columns + j],
/// of rows x columns windows that adjoin.
template <typename S>
struct TakenWindows {
  int64_t channels, window_rows, window_columns, rows, columns;
  const S* picture;
  int64_t picture_channel, picture_row;
  S* values;  // one behind the other
};

/// S is the type in memory; patches are in that of the arithmetic.
template <typename S>
struct TypedPatchKernels {
  /// patches = block of the matrix of `image`, which begins at the group's first channel.
  void (*gather)(const PatchBlock& block, const S* image, Computed<S>* patches);
  /// Adds each element of the block to the image's element that it stands for, row by row. What stands for
  /// none may be overwritten.
  void (*scatter)(const PatchBlock& block, Computed<S>* patches, Computed<S>* image);
  TypedDirectKernels<S> direct;
  TypedImageKernels<S> images;
  TypedChannelKernels<S> channels;
  TypedPointwiseKernels<Computed<S>> pointwise;
  TypedFewKernels<Computed<S>> few;
  TypedPlaneKernels<Computed<S>> planes;
  TypedWinogradKernels<Computed<S>> winograd;
  void (*spread)(const SpreadPixels<S>& p);
  void (*take)(const TakenPixels<S, S>& p);
  void (*takeWide)(const TakenPixels<S, Computed<S>>& p);
  void (*takeWindows)(const TakenWindows<S>& w);
};

using PatchKernelTable = KernelTable<TypedPatchKernels, float, double, Half, Bfloat16>;
template <>
const PatchKernelTable& kernelsOf<PatchKernelTable, 16>();
template <>
const PatchKernelTable& kernelsOf<PatchKernelTable, 32>();
template <>
const PatchKernelTable& kernelsOf<PatchKernelTable, 64>();

}  // namespace gpuc
