// What a tile packs around a block of scores, on its stack.
#pragma once

#include "runtime/host/attention/problem.h"

namespace gpuc {

/// The block that a thread computes: batch item, head, query block and key block.
struct BlockPlace {
  int64_t batch, head, query_block, key_block;
};

/// The address of a row of an operand, which is read, or written.
template <typename T>
const T* rowOf(const void* data, const AttentionLayout& layout, int64_t batch, int64_t head, int64_t row) {
  return static_cast<const T*>(data) + batch * layout.batch + head * layout.head + row * layout.row;
}
template <typename T>
T* rowOf(void* data, const AttentionLayout& layout, int64_t batch, int64_t head, int64_t row) {
  return const_cast<T*>(rowOf<T>(static_cast<const void*>(data), layout, batch, head, row));
}

/// Room for mask and dropout of one block, both [keys, queries], and for one of them before it is transposed.
template <typename T>
struct BlockScratch {
  static constexpr int64_t kElements = 16 * 1024 / static_cast<int64_t>(sizeof(T));
  alignas(64) T mask[kElements];
  alignas(64) T factors[kElements];
  alignas(64) T rows[kElements];
};

/// packed[width, queries] = factor · rowsᵀ; each row is filled up with zeros to whole vectors.
template <typename T>
void packTransposed(const AttentionProblem& problem, const T* rows, int64_t stride, int64_t queries,
                    int64_t width, T factor, T* packed);

/// The block's description, with mask and dropout's factors in `scratch`. `scores` is filled in by others.
template <typename T>
ScoreBlock<T> scoreBlock(const AttentionProblem& problem, const AttentionOperands& operands,
                         const BlockPlace& place, T* scores, BlockScratch<T>& scratch);

/// What the gradient needs of a block of queries, and computes of it and a block of keys.
template <typename T>
struct GradientBlock {
  static constexpr int64_t kMostQueries = sizeof(T) == 8 ? 32 : 64;
  static constexpr int64_t kScores = 16 * 1024 / static_cast<int64_t>(sizeof(T));
  alignas(64) T query[kMostAttentionWidth * kMostQueries];      // [width, queries], times scale
  alignas(64) T cotangent[kMostAttentionWidth * kMostQueries];  // [value_width, queries], times `factor`
  alignas(64) T shift[kMostQueries];
  alignas(64) T delta[kMostQueries];     // times `factor`
  alignas(64) T probabilities[kScores];  // [keys, queries], after dropout
  alignas(64) T slopes[kScores];         // [keys, queries], times `factor`
  BlockScratch<T> scratch;

  /// Packs query and cotangent of a block of queries.
  void pack(const AttentionProblem& problem, const AttentionOperands& operands, const BlockPlace& place,
            T factor);
  /// Probabilities and slopes of the block at `place`, whose queries are packed.
  void compute(const AttentionProblem& problem, const AttentionOperands& operands, const BlockPlace& place);
};

static_assert(sizeof(GradientBlock<float>) <= kAttentionStackBytes - 34 * 1024);
static_assert(sizeof(GradientBlock<double>) <= kAttentionStackBytes - 34 * 1024);

}  // namespace gpuc
