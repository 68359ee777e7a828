//===- AttentionOps.cpp - Attention and rotary embedding --------------------===//
//
// By the definition in ONNX's documentation of Attention (opset 23): scores are scale · Q · Kᵀ, capped,
// masked, and weigh V.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Importer.h"
#include "frontend/onnx/ops/OpTable.h"

#include <cmath>
#include <limits>

namespace gpuc::onnx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// [B, T, H · D] as [B, H, T, D].
Tensor splitHeads(const Tensor &x, int64_t heads) {
  Shape s = x.shape();
  if (s.size() != 3)
    return x;
  if (heads < 1 || s[2] % heads != 0)
    return x.emitter()->fail(std::to_string(heads) + " heads of shape " + toString(s));
  return transpose(reshape(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

/// Each head of keys or values serves `times` heads of queries that follow one another.
Tensor repeatHeads(const Tensor &x, int64_t times) {
  Shape s = x.shape();
  if (times == 1 || s.size() != 4)
    return x;
  return reshape(broadcastTo(unsqueeze(x, {2}), {s[0], s[1], times, s[2], s[3]}),
                 {s[0], s[1] * times, s[2], s[3]});
}

/// -∞ where not seen.
Tensor biasWhere(const Tensor &seen, DataType type) {
  Tensor shape = cast(seen, type);
  return select(seen, like(shape, 0), like(shape, -kInfinity));
}

/// The mask as numbers to add, of at least two dimensions, over all keys: those beyond it are not seen.
Tensor biasOf(const Tensor &mask, DataType type, int64_t keys) {
  Tensor bias = mask;
  if (mask && mask.type() == DataType::i1)
    bias = biasWhere(mask, type);
  if (bias && bias.extent(bias.rank() - 1) < keys) {
    Shape low(bias.rank(), 0), high(bias.rank(), 0);
    high.back() = keys - bias.extent(bias.rank() - 1);
    bias = pad(bias, low, high, -kInfinity);
  }
  return bias;
}

/// -∞ where query i, which stands `past` keys behind the first, sees key j not.
Tensor causalBias(Emitter &e, int64_t queries, int64_t keys, const Tensor &past, DataType type) {
  Tensor row = iota(e, {queries, keys}, DataType::i64, 0) + past;
  return biasWhere(compare("le", iota(e, {queries, keys}, DataType::i64, 1), row), type);
}

/// A query that sees no key weighs all of them by 0, where a softmax has no number.
Tensor weightsOf(const Tensor &scores) {
  Tensor top = reduce("reduce_max", scores, {scores.rank() - 1}, /*keep=*/true);
  Tensor blind = compare("eq", top, -kInfinity), zero = like(scores, 0);
  return select(blind, zero, along("softmax", select(blind, zero, scores), -1));
}

Tensor appendPast(NodeScope &node, size_t index, const Tensor &now) {
  return node.has(index) ? concat({node.input(index), now}, 2) : now;
}

void lowerAttention(NodeScope &node) {
  Tensor q = node.input(0), k = node.input(1), v = node.input(2);
  if (!q || !k || !v)
    return;
  const bool flat = q.rank() == 3;
  const DataType type = q.type();
  q = splitHeads(q, node.integer("q_num_heads", 0));
  k = splitHeads(k, node.integer("kv_num_heads", 0));
  v = splitHeads(v, node.integer("kv_num_heads", 0));
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4)
    return void(node.fail("query, key and value have three or four dimensions"));
  const int64_t past = node.has(4) ? node.input(4).extent(2) : 0;
  k = appendPast(node, 4, k);
  v = appendPast(node, 5, v);
  if (node.wants(1))
    node.output(k, 1);
  if (node.wants(2))
    node.output(v, 2);
  const int64_t heads = q.extent(1), queries = q.extent(2), keys = k.extent(2);
  if (k.extent(1) < 1 || heads % k.extent(1) != 0)
    return void(node.fail(std::to_string(heads) + " heads of queries do not share " +
                          std::to_string(k.extent(1)) + " of keys"));
  const int64_t times = heads / k.extent(1);
  k = repeatHeads(k, times), v = repeatHeads(v, times);

  // Both factors are scaled by the root, as the definition has it: f16 does not overflow so soon.
  const double root = std::sqrt(node.number("scale", 1 / std::sqrt(static_cast<double>(q.extent(3)))));
  Tensor scores = matmul(q * root, k * root, false, /*transposeRhs=*/true);
  const int64_t mode = node.integer("qk_matmul_output_mode", 0);
  if (mode == 0 && node.wants(3))
    node.output(scores, 3);
  if (double cap = node.number("softcap", 0); cap > 0)
    scores = unary("tanh", scores / cap) * cap;
  if (mode == 1 && node.wants(3))
    node.output(scores, 3);
  Emitter &e = node.emitter;
  // How many keys of each row are no padding, the last of them those of the queries.
  Tensor length = node.has(6) ? unsqueeze(cast(node.input(6), DataType::i64), {1, 2, 3}) : Tensor();
  Tensor before = e.constant({}, DataType::i64, static_cast<double>(past)), bias;
  if (node.has(3))
    bias = biasOf(node.input(3), type, keys);
  if (node.integer("is_causal", 0)) {
    Tensor causal =
        causalBias(e, queries, keys, length ? length - static_cast<double>(queries) : before, type);
    bias = bias ? bias + causal : causal;
  }
  if (length) {
    Tensor at = iota(e, {k.extent(0), 1, 1, keys}, DataType::i64, 3);
    Tensor padding = biasWhere(compare("lt", at, length), type);
    bias = bias ? bias + padding : padding;
  }
  if (bias)
    scores = scores + bias;
  if (mode == 2 && node.wants(3))
    node.output(scores, 3);
  // Without a mask each query sees the first key.
  const bool maySeeNone = node.has(3) || node.has(6);
  Tensor probabilities = maySeeNone ? weightsOf(scores) : along("softmax", scores, -1);
  if (mode == 3 && node.wants(3))
    node.output(probabilities, 3);
  Tensor result = matmul(probabilities, v);
  if (flat && result) {
    Shape s = result.shape();
    result = reshape(transpose(result, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
  }
  node.output(result);
}

/// Rows of a table of cosines or sines by position, as [B, T, 1, D/2].
Tensor angles(NodeScope &node, size_t index) {
  Tensor table = node.input(index);
  if (node.has(3))
    table = table
                ? node.emitter.op("gather", {table, node.input(3)}, node.emitter.attribute("dim", int64_t{0}))
                : table;
  return unsqueeze(table, {2});
}

void lowerRotaryEmbedding(NodeScope &node) {
  Tensor x = node.input(0);
  const bool heads = x.rank() == 4, interleaved = node.integer("interleaved", 0);
  Shape original = x.shape();
  const int64_t count = node.integer("num_heads", 0);
  if (!heads && (original.size() != 3 || count < 1 || original[2] % count != 0))
    return void(node.fail(std::to_string(count) + " heads of shape " + toString(original)));
  x = heads ? transpose(x, {0, 2, 1, 3}) : reshape(x, {original[0], original[1], count, original[2] / count});
  const int64_t size = x.extent(3), asked = node.integer("rotary_embedding_dim", 0),
                rotated = asked ? asked : size;
  if (rotated < 2 || rotated > size || rotated % 2 != 0)
    return void(node.fail("attribute 'rotary_embedding_dim' = " + std::to_string(rotated)));
  Tensor turning = slice(x, 3, 0, rotated);
  Tensor a = interleaved ? slice(turning, 3, 0, rotated, 2) : slice(turning, 3, 0, rotated / 2);
  Tensor b = interleaved ? slice(turning, 3, 1, rotated, 2) : slice(turning, 3, rotated / 2, rotated);
  Tensor cosine = angles(node, 1), sine = angles(node, 2);
  Tensor real = cosine * a - sine * b, imaginary = sine * a + cosine * b;
  Tensor turned = interleaved
                      ? reshape(concat({unsqueeze(real, {4}), unsqueeze(imaginary, {4})}, 4), turning.shape())
                      : concat({real, imaginary}, 3);
  if (rotated < size)
    turned = concat({turned, slice(x, 3, rotated, size)}, 3);
  node.output(heads ? transpose(turned, {0, 2, 1, 3}) : reshape(turned, original));
}

} // namespace

void addAttention(OpTable &table) {
  // softmax_precision: gpuc computes f16 and bf16 as f32 wherever that matters.
  table["Attention"] = {lowerAttention,
                        {"is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale",
                         "softcap", "softmax_precision"}};
  table["RotaryEmbedding"] = {lowerRotaryEmbedding, {"interleaved", "num_heads", "rotary_embedding_dim"}};
}

} // namespace gpuc::onnx
