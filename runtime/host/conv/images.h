// Convolution with an image in each lane: full vectors and no waste at the edges, whatever the extents.
#pragma once

#include <cstdint>

#include "runtime/host/matmul/element.h"

namespace gpuc {

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

}  // namespace gpuc
