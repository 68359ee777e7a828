// The kernels of depthwise convolution, whose filters meet one channel each: they read pictures where they
// lie, rows of one plane side by side, and keep what is summed up in registers.
#pragma once

#include <cstdint>

namespace gpuc {

/// Rows of planes, dense, that a kernel reads. Rows outside of [row, row_end) count as 0 and are not touched.
template <typename T>
struct ReadPlanes {
  const T* data;  // row 0 of the first plane
  int64_t plane;  // elements from one plane to the next
  int64_t columns;
  int64_t row, row_end;
};

/// Rows [row, row_end) of planes of the result: each element is the sum over the taps of the
/// filter and the window that begins at its row · stride - low, and at its column likewise; added up by
/// row, then column of the filter (by column, then row where registers hold one column's taps alone; even and
/// odd columns apart where a plane has few rows), each product by a fused multiply-add. Taps outside of the
/// rows are left out, those outside of the columns are of 0 (where rows adjoin in a vector, both are).
///   backwards: the reverse, of the stride: each element of the result is read from those windows that have
///   it.
template <typename T>
struct PlaneSums {
  int64_t images, planes;
  ReadPlanes<T> source;
  int64_t low_row, low_column;
  const T* filter;  // kernel x kernel
  int64_t filter_plane;
  bool flipped;  // its taps run backwards
  T* result;     // row 0 of the first plane
  int64_t result_plane, columns;
  int64_t row, row_end;
  int64_t source_image, result_image;  // from one image to the next

  PlaneSums ofImage(int64_t image) const {
    PlaneSums p = *this;
    p.images = 1, p.source.data += image * source_image, p.result += image * result_image;
    return p;
  }
  /// Without the planes before.
  PlaneSums from(int64_t plane) const {
    PlaneSums p = *this;
    p.planes -= plane, p.source.data += plane * source.plane;
    p.filter += plane * filter_plane, p.result += plane * result_plane;
    return p;
  }
};

/// lanes[plane][tap] (+)= over some images, rows [row, row_end) of y, and the columns of each vector of y,
/// its elements times those of x that the tap meets, in a vector of sums: by blocks of rows, in each by
/// vectors of columns, then rows. Planes that share vectors have their sums in those of the first one.
template <typename T>
struct PlaneProducts {
  int64_t images, planes;
  ReadPlanes<T> x, y;  // of the first image
  int64_t x_image, y_image;
  int64_t low_row, low_column;
  T* lanes;  // kPlaneLaneBytes for each tap
  int64_t lanes_plane;

  PlaneProducts ofImage(int64_t image) const {
    PlaneProducts p = *this;
    p.images = 1, p.x.data += image * x_image, p.y.data += image * y_image;
    return p;
  }
  /// Without the planes before.
  PlaneProducts from(int64_t plane) const {
    PlaneProducts p = *this;
    p.planes -= plane, p.x.data += plane * x.plane, p.y.data += plane * y.plane;
    p.lanes += plane * lanes_plane;
    return p;
  }
};

/// Planes of whose products several share a vector of sums.
struct SharedPlanes {
  int64_t planes = 0, in_vector = 1;

  static SharedPlanes by(int64_t in_vector, int64_t planes) {
    return {planes / in_vector * in_vector, in_vector};
  }
};

/// Room for the sums of one tap: a vector of the widest kind.
inline constexpr int64_t kPlaneLaneBytes = 64;

/// Of one size of the filter and one stride.
template <typename T>
struct PlaneKernels {
  void (*sums)(const PlaneSums<T>& p);
  void (*backwards)(
      const PlaneSums<T>& p);  // null without a stride: there `sums` of the flipped filter does it
  void (*products)(const PlaneProducts<T>& p);
  /// sums[plane][tap] = the lanes of lanes[plane][tap], added up as a tree, of the same planes as products
  /// had.
  void (*addUp)(const PlaneProducts<T>& p, T* sums, int64_t sums_plane);
};

template <typename T>
struct TypedPlaneKernels {
  PlaneKernels<T> kernels[3][2];  // of 3x3, 5x5, 7x7; by strides of 1, 2

  const PlaneKernels<T>& of(int64_t kernel, int64_t stride) const {
    return kernels[(kernel - 3) / 2][stride - 1];
  }
};

}  // namespace gpuc
