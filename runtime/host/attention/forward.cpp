// The result of a block of queries: over blocks of keys, with the largest score and the sum of exponentials
// so far [Dao et al. 2022; the order of loops and the division at the end: Dao 2023].
#include "runtime/host/attention/score_block.h"

namespace gpuc {
namespace {

/// Tiles count query blocks first, then heads, then the batch.
template <typename T>
void computeAttentionTile(const AttentionProblem& problem, const AttentionOperands& operands, int64_t tile) {
  const AttentionShape& s = problem.shape;
  const int64_t query_block = foldedIndex(tile % problem.cut.query_blocks, problem.cut.query_blocks);
  tile /= problem.cut.query_blocks;
  const int64_t head = tile % s.heads, batch = tile / s.heads, group = head / s.headsPerGroup();
  const int64_t first = query_block * problem.cut.block_queries, queries = problem.queriesOf(query_block);
  const bool queries_cut = problem.queriesCut(query_block);
  const AttentionMicroKernels& kernels = problem.micro_kernels;
  const TypedScoreKernels<T>& score_kernels = problem.score_kernels->of<T>();

  constexpr int64_t kMostQueries = GradientBlock<T>::kMostQueries;
  alignas(64) T packed[kMostAttentionWidth * kMostQueries];  // [width, queries]
  alignas(64) T scores[GradientBlock<T>::kScores];           // [keys, queries]
  alignas(64) T largest[kMostQueries], sum[kMostQueries], factor[kMostQueries], logs[kMostQueries];
  BlockScratch<T> scratch;
  const T* query = rowOf<T>(operands.query, s.query, batch, head, first);
  packTransposed(problem, query, s.query.row, queries, s.width, static_cast<T>(s.scale), packed);
  T* result = rowOf<T>(operands.result, s.result, batch, head, first);

  const int64_t key_blocks = problem.keyBlocksSeen(query_block);
  for (int64_t key_block = 0; key_block < key_blocks; ++key_block) {
    const int64_t first_key = key_block * problem.cut.block_keys;
    const T* key = rowOf<T>(operands.key, s.key, batch, group, first_key);
    const T* value = rowOf<T>(operands.value, s.value, batch, group, first_key);
    const bool keys_cut = problem.keysCut(key_block), accumulate = key_block > 0;
    kernels.multiply(kernels.scores[queries_cut][keys_cut], key, packed, scores);
    const ScoreBlock<T> block =
        scoreBlock(problem, operands, {batch, head, query_block, key_block}, scores, scratch);
    if (score_kernels.softmax(block, !accumulate, largest, sum, factor))
      score_kernels.scaleRows({queries, s.value_width, result, s.result.row, factor});
    kernels.multiply(kernels.result[queries_cut][keys_cut][accumulate], scores, value, result);
  }

  score_kernels.finish(queries, largest, sum, factor, logs);
  score_kernels.scaleRows({queries, s.value_width, result, s.result.row, factor});
  std::copy(logs, logs + queries,
            static_cast<T*>(operands.log_sum_exp) + (batch * s.heads + head) * s.queries + first);
}

}  // namespace

AttentionTile attentionTile(DataType type) {
  return type == DataType::f64 ? computeAttentionTile<double> : computeAttentionTile<float>;
}

}  // namespace gpuc
