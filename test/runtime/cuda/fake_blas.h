// What cuBLASLt is asked for, and plain loops that do it. Everything is as cuBLAS sees it: column-major.
#pragma once

#include <cublasLt.h>

#include <cstdint>

namespace gpuc::test {

struct FakeLayout {
  cudaDataType_t type = CUDA_R_32F;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;  // elements from one column to the next
  int32_t batch = 1;
  int64_t batch_stride = 0;  // in elements

  uint64_t elementBytes() const { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }
  /// From the first to behind the last that is touched.
  uint64_t spanBytes() const;
};

/// To TF32's 10 bits of mantissa: to the nearest, ties away from zero, as `cvt.rna.tf32.f32`.
float roundedToTf32(float value);

/// d = max(op(a) op(b) + bias, 0), for each matrix of the batch; rounded once.
struct FakeMatmul {
  bool transpose_a = false, transpose_b = false;
  FakeLayout a_layout, b_layout, d_layout;
  const void *a = nullptr, *b = nullptr, *bias = nullptr;
  void* d = nullptr;
  bool adds = false;  // to what d holds
  bool relu = false;
  bool tf32 = false;  // operands are rounded before they are multiplied

  uint64_t depth() const { return transpose_a ? a_layout.rows : a_layout.columns; }
  void run() const;
};

}  // namespace gpuc::test
