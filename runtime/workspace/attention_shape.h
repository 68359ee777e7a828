// What the compiler must know of attention on the host: its shape, how its operands lie, and the workspace to
// reserve for it in the plan.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/data_type.h"

namespace gpuc {

enum class AttentionKind : uint8_t { forward, gradient };

/// none; flags: i1, true where a key is seen; addends: added to the scores.
enum class AttentionMask : uint8_t { none, flags, addends };

/// Elements from one batch, head and row of an operand to the next; a row's own elements adjoin.
struct AttentionLayout {
  int64_t batch = 0, head = 0, row = 0;
};

/// query[batch, heads, queries, width], key[batch, groups, keys, width], value[batch, groups, keys,
/// value_width]; head h reads group h / (heads / groups). As gpuc.attention and gpuc.attention_gradient say.
struct AttentionShape {
  AttentionKind kind = AttentionKind::forward;
  DataType type = DataType::f32;  // of all operands but a mask of flags; f32 or f64
  int64_t batch = 1, heads = 1, groups = 1;
  int64_t queries = 1, keys = 1;
  int64_t width = 1, value_width = 1;
  double scale = 1;
  bool causal = false;  // query t sees keys 0 to t
  AttentionMask mask = AttentionMask::none;
  int64_t mask_strides[4] = {};  // elements along batch, heads, queries and keys; 0: repeated
  double dropout = 0;            // probability with which a probability is zeroed
  int64_t id = 0;                // of dropout's random bits
  AttentionLayout query, key, value, result;
  // Of the gradient alone.
  AttentionLayout cotangent, query_cotangent, key_cotangent, value_cotangent;
  bool mask_gradient = false;

  int64_t headsPerGroup() const { return heads / groups; }
};

/// [batch, heads, rows, width] without gaps.
constexpr AttentionLayout denseAttentionLayout(int64_t heads, int64_t rows, int64_t width) {
  return {heads * rows * width, rows * width, width};
}

/// Widths of heads up to this are computed on the host: blocks of their rows lie on the stack.
inline constexpr int64_t kMostAttentionWidth = 256;

/// Elements between rows, at most: the micro-kernels address with 32 bits.
inline constexpr int64_t kMostAttentionRow = int64_t{1} << 22;

/// The size of the parts when `total` is cut into as few as possible, of nearly equal size: at most `most`,
/// which is a multiple of `multiple`, as the parts are (unless there is but one).
constexpr int64_t evenAttentionPart(int64_t total, int64_t most, int64_t multiple) {
  if (total <= most) return total;
  const int64_t parts = (total + most - 1) / most;
  return ((total + parts - 1) / parts + multiple - 1) / multiple * multiple;
}

/// How the scores are cut into blocks, and the keys of a group into parts for the gradient, by the shape
/// alone.
struct AttentionCut {
  int64_t block_queries, block_keys;
  int64_t query_blocks, key_blocks;
  int64_t parts;  // of the keys; each gives a part of the query's cotangent
  int64_t blocks_per_part;
};

constexpr AttentionCut cutAttention(const AttentionShape& shape) {
  constexpr int64_t kWantedTiles = 16, kMostParts = 4;
  // 16 KiB of scores: two such blocks and the rows that they come from stay in the first-level cache. Of few
  // causal queries half of such a block would lie above the diagonal (64 x 64: 200 us instead of 170).
  const bool is_small = shape.causal && shape.queries <= 128;
  const int64_t block_queries = is_small || shape.type == DataType::f64 ? 32 : 64;
  const int64_t block_keys = is_small ? 32 : 64;
  AttentionCut cut{};
  cut.block_queries = evenAttentionPart(shape.queries, block_queries, 16);
  cut.block_keys = evenAttentionPart(shape.keys, block_keys, 16);
  cut.query_blocks = (shape.queries + cut.block_queries - 1) / cut.block_queries;
  cut.key_blocks = (shape.keys + cut.block_keys - 1) / cut.block_keys;
  // Few heads are cut into several tiles, which costs a copy of the query's cotangent each.
  const int64_t tiles = shape.batch * shape.groups;
  const int64_t wanted = std::min(kMostParts, (kWantedTiles + tiles - 1) / tiles);
  cut.blocks_per_part = (cut.key_blocks + wanted - 1) / wanted;
  cut.parts = (cut.key_blocks + cut.blocks_per_part - 1) / cut.blocks_per_part;
  return cut;
}

/// Bytes of workspace that the host needs: the parts of the query's cotangent, if there are several. Blocks
/// of scores lie on the stack of the thread that computes a tile.
constexpr int64_t attentionWorkspaceBytes(const AttentionShape& shape) {
  if (shape.kind == AttentionKind::forward) return 0;
  const int64_t parts = cutAttention(shape).parts;
  const int64_t elements = shape.batch * shape.heads * shape.queries * shape.width;
  return parts == 1 ? 0 : parts * elements * sizeOf(shape.type);
}

}  // namespace gpuc
