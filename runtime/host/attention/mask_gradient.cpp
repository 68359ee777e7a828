// The cotangent of a mask that is added to scores: dS, summed over all that the mask repeats along. A tile
// owns a block of the mask and computes the scores that it is added to once more, so that no two tiles add to
// one element; sums are carried in f64.
#include "runtime/host/attention/score_block.h"

namespace gpuc {
namespace {

/// [begin, end) of batch items, heads or blocks that one index of the mask stands for.
struct Span {
  int64_t begin, end;
};

/// Takes the innermost of a tile's indices: the mask has `count`, or repeats one.
Span takeSpan(int64_t& tile, int64_t count, bool repeats) {
  if (repeats) return {0, count};
  const int64_t index = tile % count;
  tile /= count;
  return {index, index + 1};
}

template <typename T>
class MaskTile {
 public:
  MaskTile(const AttentionProblem& problem, const AttentionOperands& operands, int64_t tile)
      : problem_(problem), operands_(operands) {
    const int64_t* strides = problem.shape.mask_strides;
    keys_ = takeSpan(tile, problem.cut.key_blocks, strides[3] == 0);
    queries_ = takeSpan(tile, problem.cut.query_blocks, strides[2] == 0);
    heads_ = takeSpan(tile, problem.shape.heads, strides[1] == 0);
    batch_ = takeSpan(tile, problem.shape.batch, strides[0] == 0);
  }

  void compute() {
    for (int64_t batch = batch_.begin; batch < batch_.end; ++batch)
      for (int64_t head = heads_.begin; head < heads_.end; ++head)
        for (int64_t query_block = queries_.begin; query_block < queries_.end; ++query_block)
          addBlocks({batch, head, query_block, 0});
    write();
  }

 private:
  /// One block of queries with all key blocks of the tile that it sees.
  void addBlocks(BlockPlace place) {
    const int64_t end = std::min(keys_.end, problem_.keyBlocksSeen(place.query_block));
    if (end <= keys_.begin) return;
    block_.pack(problem_, operands_, place, T(1));
    for (place.key_block = keys_.begin; place.key_block < end; ++place.key_block) {
      block_.compute(problem_, operands_, place);
      const int64_t queries = problem_.queriesOf(place.query_block), stride = problem_.strideOf(queries);
      for (int64_t key = 0; key < problem_.keysOf(place.key_block); ++key)
        for (int64_t query = 0; query < queries; ++query)
          sums_[key * kMostQueries + query] += static_cast<double>(block_.slopes[key * stride + query]);
    }
  }

  /// Sums over what repeats within the block, and writes what the mask has.
  void write() {
    const int64_t* strides = problem_.shape.mask_strides;
    const AttentionCut& cut = problem_.cut;
    if (strides[3] == 0)
      for (int64_t i = kMostQueries; i < cut.block_keys * kMostQueries; ++i)
        sums_[i % kMostQueries] += sums_[i];
    const int64_t keys = strides[3] == 0 ? 1 : problem_.keysOf(keys_.begin);
    const int64_t queries = strides[2] == 0 ? 1 : problem_.queriesOf(queries_.begin);
    T* to = static_cast<T*>(operands_.mask_cotangent) + batch_.begin * strides[0] +
            heads_.begin * strides[1] + queries_.begin * cut.block_queries * strides[2] +
            keys_.begin * cut.block_keys * strides[3];
    for (int64_t key = 0; key < keys; ++key) {
      double* row = sums_ + key * kMostQueries;
      if (strides[2] == 0)
        for (int64_t query = 1; query < cut.block_queries; ++query) row[0] += row[query];
      for (int64_t query = 0; query < queries; ++query)
        to[query * strides[2] + key * strides[3]] = static_cast<T>(row[query]);
    }
  }

  static constexpr int64_t kMostQueries = GradientBlock<T>::kMostQueries;
  static constexpr int64_t kMostKeys = 64;

  const AttentionProblem& problem_;
  const AttentionOperands& operands_;
  Span keys_, queries_, heads_, batch_;
  double sums_[kMostKeys * kMostQueries] = {};  // [keys, queries]
  GradientBlock<T> block_;
};

static_assert(sizeof(MaskTile<float>) <= kAttentionStackBytes &&
              sizeof(MaskTile<double>) <= kAttentionStackBytes);

/// Tiles count what the mask has of key blocks first, then of query blocks, heads and the batch.
template <typename T>
void computeMaskGradientTile(const AttentionProblem& problem, const AttentionOperands& operands,
                             int64_t tile) {
  MaskTile<T>(problem, operands, tile).compute();
}

}  // namespace

int64_t maskGradientTiles(const AttentionProblem& problem) {
  const AttentionShape& s = problem.shape;
  const int64_t counts[] = {s.batch, s.heads, problem.cut.query_blocks, problem.cut.key_blocks};
  int64_t tiles = 1;
  for (int dim = 0; dim < 4; ++dim)
    if (s.mask_strides[dim] != 0) tiles *= counts[dim];
  return tiles;
}

AttentionTile maskGradientTile(DataType type) {
  return type == DataType::f64 ? computeMaskGradientTile<double> : computeMaskGradientTile<float>;
}

}  // namespace gpuc
