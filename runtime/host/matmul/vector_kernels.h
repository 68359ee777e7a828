// What LIBXSMM lacks, written with vectors of 16, 32 or 64 bytes: products of two rows, and transposing.
#pragma once

#include <cstdint>

namespace gpuc {

/// c[rows, columns] = a · b^T (+ bias or c): every element is the product of a row of a and a row of b.
/// Bits of an element depend on k and the vector width alone, not on rows and columns.
template <typename T>
struct DotTile {
  int64_t rows, columns, k;
  const T* a;  // [rows, lda]
  int64_t lda;
  const T* b;  // [columns, ldb]
  int64_t ldb;
  T* c;  // [rows, ldc]
  int64_t ldc;
  const T* bias;  // of the first column; null: none
  int64_t bias_step;
  bool accumulate;  // add to c
};

/// target[column, row] = source[row, column]. Each target row is filled up with zeros to whole vectors of the
/// table's width, for which the target must have room.
template <typename T>
struct TransposeTile {
  int64_t rows, columns;
  const T* source;
  int64_t source_stride;
  T* target;
  int64_t target_stride;
};

template <typename T>
struct TypedVectorKernels {
  void (*dot)(const DotTile<T>&);
  void (*transpose)(const TransposeTile<T>&);
};

struct VectorKernelTable {
  TypedVectorKernels<float> f32;
  TypedVectorKernels<double> f64;

  template <typename T>
  const TypedVectorKernels<T>& of() const;
};

template <>
inline const TypedVectorKernels<float>& VectorKernelTable::of<float>() const {
  return f32;
}
template <>
inline const TypedVectorKernels<double>& VectorKernelTable::of<double>() const {
  return f64;
}

/// The kernels for the widest vectors that both this CPU has and `most_vector_bytes` allows. Never null.
const VectorKernelTable* vectorKernels(int most_vector_bytes);

}  // namespace gpuc
