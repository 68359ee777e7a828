// What happens to a block of scores between two matrix products, compiled for vectors of 16, 32 and 64 bytes.
//
// A block holds the scores of some keys (its rows) by some queries (its columns): what belongs to one query,
// its largest score, the sum of its exponentials, lies in one lane, and no sum runs across lanes.
#pragma once

#include <cstdint>

#include "runtime/host/matmul/kernel_table.h"

namespace gpuc {

/// Block[keys, stride], with `queries` columns rounded up to whole vectors of the table's width. Columns
/// beyond the queries hold anything, and results there mean nothing.
template <typename T>
struct ScoreBlock {
  T* scores;  // scale · key · query; the probabilities afterwards
  int64_t keys, queries;
  int64_t stride;
  int64_t diagonal;    // query q sees key k if k <= q + diagonal
  bool causal;         // whether that hides any
  const T* mask;       // [keys, stride] or null
  bool mask_is_flags;  // a mask of 0 hides a score; else it is added
  const T* factors;    // [keys, stride] or null: of dropout; 0 drops
};

/// What a row of results is divided and multiplied by.
template <typename T>
struct RowScale {
  int64_t rows, columns;
  T* data;
  int64_t stride;
  const T* factors;  // [rows]
};

/// The random bits of dropout for a block: those of element first + query · step_between + key.
struct DropoutBits {
  uint64_t seed, step, id;
  uint64_t first, between;
  uint32_t threshold;  // an element is kept if its 24 highest bits are at least this
};

template <typename T>
struct TypedScoreKernels {
  /// Exponentials of the scores less the largest score so far, times dropout's factors. Goes on from
  /// largest[queries] and sum[queries], or with `first` begins them; rescale[queries] is what earlier sums
  /// and results must be multiplied with. True if any of those is not 1.
  bool (*softmax)(const ScoreBlock<T>& block, bool first, T* largest, T* sum, T* rescale);
  /// inverse = 1 / sum, log_sum_exp = largest + log(sum); 1 and -∞ where the sum is 0.
  void (*finish)(int64_t queries, const T* largest, const T* sum, T* inverse, T* log_sum_exp);
  /// P = exp(scores - shift) with shift[queries]; slopes[keys, stride] become P · (factor · slopes - delta),
  /// scores become factor · P.
  void (*differentiate)(const ScoreBlock<T>& block, const T* shift, const T* delta, T* slopes);
  /// data[row, column] *= factors[row].
  void (*scaleRows)(const RowScale<T>& rows);
  /// delta[row] = factor · Σ a[row, i] · b[row, i]; shift = log_sum_exp, 0 where that is -∞.
  void (*rowProducts)(int64_t rows, int64_t columns, const T* a, int64_t stride_a, const T* b,
                      int64_t stride_b, T factor, T* delta);
  /// x *= factor.
  void (*scale)(T* x, int64_t count, T factor);
  /// factors[queries, stride] = factor where an element is kept, else 0.
  void (*drop)(const DropoutBits& bits, int64_t queries, int64_t keys, T factor, T* factors, int64_t stride);
};

using ScoreKernelTable = KernelTable<TypedScoreKernels, float, double>;
template <>
const ScoreKernelTable& kernelsOf<ScoreKernelTable, 16>();
template <>
const ScoreKernelTable& kernelsOf<ScoreKernelTable, 32>();
template <>
const ScoreKernelTable& kernelsOf<ScoreKernelTable, 64>();

}  // namespace gpuc
