// What LIBXSMM lacks, written with vectors of 16, 32 or 64 bytes: products of two rows, transposing, and
// copies between the 16-bit floats in memory and f32.
#pragma once

#include <cstdint>

#include "runtime/host/matmul/kernel_table.h"

namespace gpuc {

/// c[rows, columns] = a · b^T: every element is the product of a row of a and a row of b. Bits of an
/// element depend on k and the vector width alone, not on rows and columns.
template <typename S>
struct DotTile {
  int64_t rows, columns, k;
  const S* a;  // [rows, lda]
  int64_t lda;
  const S* b;  // [columns, ldb]
  int64_t ldb;
  Computed<S>* c;  // [rows, ldc]
  int64_t ldc;
};

/// c[rows, columns] += a · b, where each element's products are summed up in their order first, by fused
/// multiply-adds where the table has them.
template <typename T>
struct ProductTile {
  int64_t rows, columns, k;
  const T* a;  // [rows, k], one step after another
  int64_t a_row_step, a_k_step;
  const T* b;  // [k, ldb]
  int64_t ldb;
  T* c;  // [rows, ldc]
  int64_t ldc;
};

/// target[column, row] = source[row, column]. Each target row is filled up with zeros to whole vectors of the
/// table's width, for which the target must have room.
template <typename S>
struct TransposeTile {
  int64_t rows, columns;
  const S* source;
  int64_t source_stride;
  Computed<S>* target;
  int64_t target_stride;
};

/// target[row, column] = source[row, column]. To a 16-bit float it rounds to the nearest, ties to even.
template <typename From, typename To>
struct CopyTile {
  int64_t rows, columns;
  const From* source;
  int64_t source_stride;
  To* target;
  int64_t target_stride;
};

/// c[row, column] = max(c[row, column] + bias, 0): what follows each element of a product, after that is
/// rounded; the sum with the bias is rounded, too. With a mask, instead: 0 where that is 0 or less.
template <typename S>
struct FinishTile {
  int64_t rows, columns;
  S* c;
  int64_t ldc;
  const S* bias;      // null: none
  bool bias_of_rows;  // one element for each row, or for each column
  bool relu;
  const S* mask;  // as c lies; null: none
};

/// *sum = the squares of all elements, added up.
template <typename T>
struct SquaresTile {
  int64_t rows, columns;
  const T* c;
  int64_t ldc;
  T* sum;
};

/// S is the type in memory.
template <typename S>
struct TypedVectorKernels {
  void (*dot)(const DotTile<S>&);
  void (*transpose)(const TransposeTile<S>&);
  void (*widen)(const CopyTile<S, Computed<S>>&);
  void (*narrow)(const CopyTile<Computed<S>, S>&);
  void (*add)(const CopyTile<Computed<S>, S>&);  // the same, added to what target holds
  void (*addProduct)(const ProductTile<Computed<S>>&);
  void (*finish)(const FinishTile<S>&);
  void (*squares)(const SquaresTile<Computed<S>>&);
};

using VectorKernelTable = KernelTable<TypedVectorKernels, float, double, Half, Bfloat16>;
template <>
const VectorKernelTable& kernelsOf<VectorKernelTable, 16>();
template <>
const VectorKernelTable& kernelsOf<VectorKernelTable, 32>();
template <>
const VectorKernelTable& kernelsOf<VectorKernelTable, 64>();

}  // namespace gpuc
