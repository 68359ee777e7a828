#include "runtime/host/attention/score_block.h"

#include <cstring>
#include <limits>

namespace gpuc {
namespace {

/// The mask's elements as numbers, flags as 0 and 1: to[rows, stride].
template <typename T, typename Element>
void readMask(const Element* mask, int64_t between_rows, int64_t between_keys, int64_t rows, int64_t keys,
              T* to, int64_t stride) {
  for (int64_t row = 0; row < rows; ++row, mask += between_rows, to += stride)
    for (int64_t key = 0; key < keys; ++key) to[key] = static_cast<T>(mask[key * between_keys]);
}

template <typename T>
void readMask(const AttentionProblem& problem, const AttentionOperands& operands, const BlockPlace& place,
              int64_t rows, int64_t keys, T* to, int64_t stride) {
  const int64_t* strides = problem.shape.mask_strides;
  const int64_t offset = place.batch * strides[0] + place.head * strides[1] +
                         place.query_block * problem.cut.block_queries * strides[2] +
                         place.key_block * problem.cut.block_keys * strides[3];
  if (problem.shape.mask == AttentionMask::flags)
    readMask(static_cast<const uint8_t*>(operands.mask) + offset, strides[2], strides[3], rows, keys, to,
             stride);
  else
    readMask(static_cast<const T*>(operands.mask) + offset, strides[2], strides[3], rows, keys, to, stride);
}

/// mask[keys, block stride]. One row for all queries is repeated; else rows are turned into columns.
template <typename T>
void packMask(const AttentionProblem& problem, const AttentionOperands& operands, const BlockPlace& place,
              const ScoreBlock<T>& block, BlockScratch<T>& scratch) {
  if (problem.shape.mask_strides[2] == 0) {
    readMask(problem, operands, place, 1, block.keys, scratch.rows, block.keys);
    for (int64_t key = 0; key < block.keys; ++key)
      std::fill_n(scratch.mask + key * block.stride, block.stride, scratch.rows[key]);
    return;
  }
  readMask(problem, operands, place, block.queries, block.keys, scratch.rows, block.keys);
  problem.vector_kernels->of<T>().transpose(
      {block.queries, block.keys, scratch.rows, block.keys, scratch.mask, block.stride});
}

int64_t loadCounter(const void* counter) {
  int64_t value;
  std::memcpy(&value, counter, sizeof value);
  return value;
}

template <typename T>
void packFactors(const AttentionProblem& problem, const AttentionOperands& operands, const BlockPlace& place,
                 const ScoreBlock<T>& block, BlockScratch<T>& scratch) {
  const AttentionShape& s = problem.shape;
  const int64_t row =
      (place.batch * s.heads + place.head) * s.queries + place.query_block * problem.cut.block_queries;
  const DropoutBits bits{.seed = static_cast<uint64_t>(loadCounter(operands.seed)),
                         .step = static_cast<uint64_t>(loadCounter(operands.step)),
                         .id = static_cast<uint64_t>(s.id),
                         .first = static_cast<uint64_t>(row) * static_cast<uint64_t>(s.keys) +
                                  static_cast<uint64_t>(place.key_block * problem.cut.block_keys),
                         .between = static_cast<uint64_t>(s.keys),
                         .threshold = problem.drop_threshold};
  problem.score_kernels->of<T>().drop(bits, block.queries, block.keys, static_cast<T>(1 / (1 - s.dropout)),
                                      scratch.rows, block.keys);
  problem.vector_kernels->of<T>().transpose(
      {block.queries, block.keys, scratch.rows, block.keys, scratch.factors, block.stride});
}

}  // namespace

template <typename T>
void packTransposed(const AttentionProblem& problem, const T* rows, int64_t stride, int64_t queries,
                    int64_t width, T factor, T* packed) {
  const int64_t packed_stride = problem.strideOf(queries);
  problem.vector_kernels->of<T>().transpose({queries, width, rows, stride, packed, packed_stride});
  if (factor != 1) problem.score_kernels->of<T>().scale(packed, width * packed_stride, factor);
}

template <typename T>
ScoreBlock<T> scoreBlock(const AttentionProblem& problem, const AttentionOperands& operands,
                         const BlockPlace& place, T* scores, BlockScratch<T>& scratch) {
  const int64_t first_query = place.query_block * problem.cut.block_queries;
  const int64_t first_key = place.key_block * problem.cut.block_keys;
  ScoreBlock<T> block{};
  block.scores = scores;
  block.keys = problem.keysOf(place.key_block);
  block.queries = problem.queriesOf(place.query_block);
  block.stride = problem.strideOf(block.queries);
  block.diagonal = first_query - first_key;
  block.causal = problem.shape.causal && block.keys - 1 > block.diagonal;
  if (problem.shape.mask != AttentionMask::none) {
    packMask(problem, operands, place, block, scratch);
    block.mask = scratch.mask;
    block.mask_is_flags = problem.shape.mask == AttentionMask::flags;
  }
  if (problem.drops()) {
    packFactors(problem, operands, place, block, scratch);
    block.factors = scratch.factors;
  }
  return block;
}

template <typename T>
void GradientBlock<T>::pack(const AttentionProblem& problem, const AttentionOperands& operands,
                            const BlockPlace& place, T factor) {
  const AttentionShape& s = problem.shape;
  const int64_t first = place.query_block * problem.cut.block_queries;
  const int64_t queries = problem.queriesOf(place.query_block);
  const T* rows = rowOf<T>(operands.query, s.query, place.batch, place.head, first);
  packTransposed(problem, rows, s.query.row, queries, s.width, static_cast<T>(s.scale), query);
  const T* ct = rowOf<T>(operands.cotangent, s.cotangent, place.batch, place.head, first);
  packTransposed(problem, ct, s.cotangent.row, queries, s.value_width, factor, cotangent);

  const T* result = rowOf<T>(operands.result, s.result, place.batch, place.head, first);
  problem.score_kernels->of<T>().rowProducts(queries, s.value_width, ct, s.cotangent.row, result,
                                             s.result.row, factor, delta);
  const T* logs =
      static_cast<const T*>(operands.log_sum_exp) + (place.batch * s.heads + place.head) * s.queries + first;
  // A query that sees nothing: -∞ - (-∞) would be NaN.
  for (int64_t i = 0; i < queries; ++i)
    shift[i] = logs[i] == -std::numeric_limits<T>::infinity() ? 0 : logs[i];
}

template <typename T>
void GradientBlock<T>::compute(const AttentionProblem& problem, const AttentionOperands& operands,
                               const BlockPlace& place) {
  const AttentionShape& s = problem.shape;
  const int64_t group = place.head / s.headsPerGroup(), first = place.key_block * problem.cut.block_keys;
  const T* key = rowOf<T>(operands.key, s.key, place.batch, group, first);
  const T* value = rowOf<T>(operands.value, s.value, place.batch, group, first);
  const bool queries_cut = problem.queriesCut(place.query_block), keys_cut = problem.keysCut(place.key_block);
  const AttentionMicroKernels& kernels = problem.micro_kernels;
  kernels.multiply(kernels.scores[queries_cut][keys_cut], key, query, probabilities);
  kernels.multiply(kernels.slopes[queries_cut][keys_cut], value, cotangent, slopes);
  const ScoreBlock<T> block = scoreBlock(problem, operands, place, probabilities, scratch);
  problem.score_kernels->of<T>().differentiate(block, shift, delta, slopes);
}

template void packTransposed<float>(const AttentionProblem&, const float*, int64_t, int64_t, int64_t, float,
                                    float*);
template void packTransposed<double>(const AttentionProblem&, const double*, int64_t, int64_t, int64_t,
                                     double, double*);
template ScoreBlock<float> scoreBlock<float>(const AttentionProblem&, const AttentionOperands&,
                                             const BlockPlace&, float*, BlockScratch<float>&);
template ScoreBlock<double> scoreBlock<double>(const AttentionProblem&, const AttentionOperands&,
                                               const BlockPlace&, double*, BlockScratch<double>&);
template struct GradientBlock<float>;
template struct GradientBlock<double>;

}  // namespace gpuc
