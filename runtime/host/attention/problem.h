// Attention as it is executed: how it is cut into tiles and blocks, which follows from the shape alone, and
// the machine code for those.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/host/attention/score_kernels.h"
#include "runtime/host/matmul/micro_kernel.h"
#include "runtime/host/matmul/vector_kernels.h"
#include "runtime/host/tiled_kernel.h"
#include "runtime/workspace/attention_shape.h"

namespace gpuc {

/// The most stack that a tile uses for blocks of scores and the rows that they come from.
inline constexpr int64_t kAttentionStackBytes = 256 * 1024;

/// Addresses of one execution. Aligned to their element type at least; 64 bytes are faster. What is written
/// overlaps nothing else, and is never read before: old NaNs do not survive.
struct AttentionOperands {
  const void* query = nullptr;
  const void* key = nullptr;
  const void* value = nullptr;
  void* result = nullptr;       // written by the forward pass, read by the gradient
  void* log_sum_exp = nullptr;  // [batch, heads, queries]; likewise
  const void* mask = nullptr;
  const void* seed = nullptr;  // i64, of dropout
  const void* step = nullptr;  // i64
  const void* cotangent = nullptr;
  void* query_cotangent = nullptr;
  void* key_cotangent = nullptr;
  void* value_cotangent = nullptr;
  void* mask_cotangent = nullptr;
  void* workspace = nullptr;
};

/// The micro-kernels for whole blocks and for those cut short: [queries cut short][keys cut short], and where
/// there are more indices, [accumulate].
struct AttentionMicroKernels {
  MicroKernel scores[2][2] = {};              // [keys, queries] = key · queryᵀ
  MicroKernel slopes[2][2] = {};              // [keys, queries] = value · cotangentᵀ
  MicroKernel result[2][2][2] = {};           // [queries, value_width] = Pᵀ · value
  MicroKernel value_cotangent[2][2][2] = {};  // [keys, value_width] = P · cotangent
  MicroKernel key_cotangent[2][2][2] = {};    // [keys, width] = dS · query
  MicroKernel query_cotangent[2][2][2] = {};  // [queries, width] = dSᵀ · key
  void (*after)() = nullptr;                  // see afterMicroKernels

  /// The call reaches generated code, which carries no type for a sanitizer to look at.
  __attribute__((no_sanitize("undefined"))) void multiply(MicroKernel kernel, const void* a, const void* b,
                                                          void* c) const {
    kernel(b, a, c);
    if (after) after();
  }
};

struct AttentionProblem;

using AttentionPhase = TilePhase<AttentionProblem, AttentionOperands>;
using AttentionTile = AttentionPhase::Compute;

struct AttentionProblem {
  AttentionShape shape;
  AttentionCut cut{};
  std::vector<AttentionPhase> phases;
  AttentionMicroKernels micro_kernels;
  const ScoreKernelTable* score_kernels = nullptr;
  const VectorKernelTable* vector_kernels = nullptr;
  int64_t lanes = 1;            // of the score kernels' vectors
  AttentionLayout partial;      // of a part of the query's cotangent in the workspace, or of the whole
  uint32_t drop_threshold = 0;  // see DropoutBits

  bool summed() const { return cut.parts > 1; }
  bool drops() const { return shape.dropout > 0; }

  int64_t queriesOf(int64_t block) const {
    return std::min(cut.block_queries, shape.queries - block * cut.block_queries);
  }
  int64_t keysOf(int64_t block) const {
    return std::min(cut.block_keys, shape.keys - block * cut.block_keys);
  }
  bool queriesCut(int64_t block) const { return queriesOf(block) < cut.block_queries; }
  bool keysCut(int64_t block) const { return keysOf(block) < cut.block_keys; }

  /// Elements between the rows of a block of scores of so many queries: whole vectors.
  int64_t strideOf(int64_t queries) const { return (queries + lanes - 1) / lanes * lanes; }

  /// The key blocks that a query block sees, from the first on.
  int64_t keyBlocksSeen(int64_t query_block) const {
    if (!shape.causal) return cut.key_blocks;
    const int64_t end = query_block * cut.block_queries + queriesOf(query_block);
    return std::min(cut.key_blocks, (end + cut.block_keys - 1) / cut.block_keys);
  }
  /// The first query block that sees a key block, or their number if none does.
  int64_t firstQueryBlock(int64_t key_block) const {
    if (!shape.causal) return 0;
    const int64_t first_key = key_block * cut.block_keys;
    return first_key < shape.queries ? first_key / cut.block_queries : cut.query_blocks;
  }
};

/// 0, n - 1, 1, n - 2, …: causal blocks take the longer the later they are, and threads take runs of tiles.
inline int64_t foldedIndex(int64_t index, int64_t count) {
  return index % 2 == 0 ? index / 2 : count - 1 - index / 2;
}

// What computes a tile of each kind, in f32 or f64.
AttentionTile attentionTile(DataType type);
AttentionTile attentionGradientTile(DataType type);
/// Adds up the parts of the query's cotangent for a block of queries.
AttentionTile sumQueryCotangentTile(DataType type);
/// The cotangent of a block of the mask.
AttentionTile maskGradientTile(DataType type);
int64_t maskGradientTiles(const AttentionProblem& problem);

}  // namespace gpuc
