// What the kernels of Winograd's convolutions compute (runtime/workspace/conv_winograd.h).
#pragma once

#include <cstdint>

#include "runtime/host/matmul/kernel_table.h"

namespace gpuc {

/// rows x columns tiles, one behind the other in each of 16 planes, and the pixels that they stand for, of
/// which the first `pixel_rows` rows and `pixel_columns` columns exist. A pixel, and a tile in a plane, has
/// `lanes` channels side by side, whole vectors of 64 bytes.
template <typename T>
struct WinogradTiles {
  int64_t rows, columns, lanes;
  T* pixels;
  int64_t pixel_rows, pixel_columns, pixel_row;  // elements between rows
  T* planes;
  int64_t plane;  // elements between planes
};

/// Filters of 3x3 taps, `count` one behind the other in each of 16 planes, and as they are: [filter][tap],
/// the taps of one tap_step apart. Of each there are `lanes` side by side.
template <typename T>
struct WinogradFilters {
  int64_t count, lanes;
  T* taps;
  int64_t filter_step, tap_step;
  T* planes;
  int64_t plane;
};

template <typename T>
struct TypedWinogradKernels {
  void (*source)(const WinogradTiles<T>& p);      // planes = B^T·pixels·B, of tiles that overlap by two
  void (*result)(const WinogradTiles<T>& p);      // pixels = A^T·planes·A
  void (*cotangent)(const WinogradTiles<T>& p);   // planes = A·pixels·A^T; pixels that are not count as 0
  void (*filter)(const WinogradFilters<T>& p);    // planes = G·taps·G^T
  void (*gradient)(const WinogradFilters<T>& p);  // taps = G^T·planes·G
};

}  // namespace gpuc
