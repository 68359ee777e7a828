// The cotangents of query, key and value: probabilities are computed again from the logarithms, once for each
// pair of blocks [Dao et al. 2022, algorithm 4]. A tile holds some key blocks of a group of heads, and passes
// over all queries of those heads; what it finds of the query's cotangent is whole if it holds all keys, else
// a part in the workspace, and a second phase adds the parts up.
#include <limits>

#include "runtime/host/attention/score_block.h"

namespace gpuc {
namespace {

template <typename T>
class GradientTile {
 public:
  /// Tiles count parts of the keys first, then groups, then the batch.
  GradientTile(const AttentionProblem& problem, const AttentionOperands& operands, int64_t tile)
      : problem_(problem), operands_(operands) {
    const AttentionCut& cut = problem.cut;
    part_ = foldedIndex(tile % cut.parts, cut.parts);
    tile /= cut.parts;
    group_ = tile % problem.shape.groups;
    batch_ = tile / problem.shape.groups;
    first_key_block_ = part_ * cut.blocks_per_part;
    end_key_block_ = std::min(cut.key_blocks, first_key_block_ + cut.blocks_per_part);
  }

  void compute() {
    const int64_t heads = problem_.shape.headsPerGroup();
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t block = 0; block < problem_.cut.query_blocks; ++block)
        passQueries({batch_, group_ * heads + head, block, 0}, head == 0);
    for (int64_t block = first_key_block_; block < end_key_block_; ++block)
      if (problem_.firstQueryBlock(block) == problem_.cut.query_blocks) zeroKeys(block);
  }

 private:
  void passQueries(BlockPlace place, bool is_first_head) {
    const int64_t end = std::min(end_key_block_, problem_.keyBlocksSeen(place.query_block));
    T* query_cotangent = queryCotangent(place);
    if (end <= first_key_block_) {
      for (int64_t row = 0; row < problem_.queriesOf(place.query_block); ++row)
        std::fill_n(query_cotangent + row * problem_.partial.row, problem_.shape.width, T(0));
      return;
    }
    // With the cotangent times scale, the slopes come out times scale, as query's and key's want them.
    block_.pack(problem_, operands_, place, static_cast<T>(problem_.shape.scale));
    for (place.key_block = first_key_block_; place.key_block < end; ++place.key_block) {
      block_.compute(problem_, operands_, place);
      addKeys(place, !is_first_head || place.query_block > problem_.firstQueryBlock(place.key_block));
      addQueries(place, query_cotangent, place.key_block > first_key_block_);
    }
  }

  /// The cotangents of the block's keys and values.
  void addKeys(const BlockPlace& place, bool accumulate) {
    const AttentionShape& s = problem_.shape;
    const AttentionMicroKernels& kernels = problem_.micro_kernels;
    const bool queries_cut = problem_.queriesCut(place.query_block),
               keys_cut = problem_.keysCut(place.key_block);
    const int64_t first_query = place.query_block * problem_.cut.block_queries;
    const T* cotangent = rowOf<T>(operands_.cotangent, s.cotangent, batch_, place.head, first_query);
    const T* query = rowOf<T>(operands_.query, s.query, batch_, place.head, first_query);
    kernels.multiply(kernels.value_cotangent[queries_cut][keys_cut][accumulate], block_.probabilities,
                     cotangent, valueCotangent(place.key_block));
    kernels.multiply(kernels.key_cotangent[queries_cut][keys_cut][accumulate], block_.slopes, query,
                     keyCotangent(place.key_block));
  }

  void addQueries(const BlockPlace& place, T* query_cotangent, bool accumulate) {
    const AttentionShape& s = problem_.shape;
    const AttentionMicroKernels& kernels = problem_.micro_kernels;
    const bool queries_cut = problem_.queriesCut(place.query_block),
               keys_cut = problem_.keysCut(place.key_block);
    const T* key = rowOf<T>(operands_.key, s.key, batch_, group_, place.key_block * problem_.cut.block_keys);
    kernels.multiply(kernels.query_cotangent[queries_cut][keys_cut][accumulate], block_.slopes, key,
                     query_cotangent);
  }

  T* queryCotangent(const BlockPlace& place) const {
    const AttentionShape& s = problem_.shape;
    T* base = static_cast<T*>(operands_.query_cotangent);
    if (problem_.summed())
      base = static_cast<T*>(operands_.workspace) + part_ * s.batch * s.heads * s.queries * s.width;
    return rowOf<T>(base, problem_.partial, batch_, place.head,
                    place.query_block * problem_.cut.block_queries);
  }
  T* keyCotangent(int64_t block) const {
    return rowOf<T>(operands_.key_cotangent, problem_.shape.key_cotangent, batch_, group_,
                    block * problem_.cut.block_keys);
  }
  T* valueCotangent(int64_t block) const {
    return rowOf<T>(operands_.value_cotangent, problem_.shape.value_cotangent, batch_, group_,
                    block * problem_.cut.block_keys);
  }

  /// Keys that no query sees.
  void zeroKeys(int64_t block) const {
    const AttentionShape& s = problem_.shape;
    for (int64_t row = 0; row < problem_.keysOf(block); ++row) {
      std::fill_n(keyCotangent(block) + row * s.key_cotangent.row, s.width, T(0));
      std::fill_n(valueCotangent(block) + row * s.value_cotangent.row, s.value_width, T(0));
    }
  }

  const AttentionProblem& problem_;
  const AttentionOperands& operands_;
  int64_t batch_, group_, part_;
  int64_t first_key_block_, end_key_block_;
  GradientBlock<T> block_;
};

template <typename T>
void computeAttentionGradientTile(const AttentionProblem& problem, const AttentionOperands& operands,
                                  int64_t tile) {
  GradientTile<T>(problem, operands, tile).compute();
}

/// ((part 0 + part 1) + part 2) + …; tiles count query blocks first, then heads, then the batch.
template <typename T>
void sumQueryCotangent(const AttentionProblem& problem, const AttentionOperands& operands, int64_t tile) {
  const AttentionShape& s = problem.shape;
  const int64_t block = tile % problem.cut.query_blocks, head = tile / problem.cut.query_blocks % s.heads;
  const int64_t batch = tile / problem.cut.query_blocks / s.heads, first = block * problem.cut.block_queries;
  const int64_t elements = s.batch * s.heads * s.queries * s.width;
  const T* parts = rowOf<T>(operands.workspace, problem.partial, batch, head, first);
  T* to = rowOf<T>(operands.query_cotangent, s.query_cotangent, batch, head, first);
  for (int64_t row = 0; row < problem.queriesOf(block);
       ++row, parts += s.width, to += s.query_cotangent.row) {
    std::copy(parts, parts + s.width, to);
    for (int64_t part = 1; part < problem.cut.parts; ++part)
      for (int64_t i = 0; i < s.width; ++i) to[i] += parts[part * elements + i];
  }
}

}  // namespace

AttentionTile attentionGradientTile(DataType type) {
  return type == DataType::f64 ? computeAttentionGradientTile<double> : computeAttentionGradientTile<float>;
}

AttentionTile sumQueryCotangentTile(DataType type) {
  return type == DataType::f64 ? sumQueryCotangent<double> : sumQueryCotangent<float>;
}

}  // namespace gpuc
