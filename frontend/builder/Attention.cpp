//===- Attention.cpp - Scaled dot-product attention ---------------------------===//

#include "frontend/builder/Attention.h"
#include "frontend/builder/Graph.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpuc::nn {

using detail::Graph;

namespace {

/// Whether the shapes are [batch, heads, queries, d], [batch, groups, keys, d] and [batch, groups, keys, e].
/// No extent of a tensor is 0.
bool fit(const Shape &query, const Shape &key, const Shape &value) {
  return query.size() == 4 && key.size() == 4 && value.size() == 4 && query[0] == key[0] &&
         query[3] == key[3] && std::equal(key.begin(), key.begin() + 3, value.begin()) &&
         query[1] % key[1] == 0;
}

} // namespace

Tensor attention(const Tensor &query, const Tensor &key, const Tensor &value,
                 const AttentionOptions &options) {
  Graph *graph = query.graph();
  if (!graph || !graph->usable("attention", {&query, &key, &value}))
    return {};
  const Tensor &mask = options.mask;
  if (mask.graph() && !graph->usable("attention", {&mask}))
    return {};
  if (!isFloat(query.dtype()) || key.dtype() != query.dtype() || value.dtype() != query.dtype())
    return graph->fail(
        llvm::formatv("attention takes query, key and value of one floating-point type, got {0}, "
                      "{1} and {2}",
                      nameOf(query.dtype()), nameOf(key.dtype()), nameOf(value.dtype())));
  const Shape q = query.shape(), k = key.shape(), v = value.shape();
  if (!fit(q, k, v))
    return graph->fail(
        llvm::formatv("attention takes query [batch, heads, queries, d], key [batch, groups, keys, "
                      "d] and value [batch, groups, keys, e], got {0}, {1} and {2}",
                      toString(q), toString(k), toString(v)));
  const Shape scores = {q[0], q[1], q[2], k[2]};
  if (mask.graph() && ((mask.dtype() != DataType::i1 && mask.dtype() != query.dtype()) ||
                       !repetitionOf(mask.shape(), scores)))
    return graph->fail(llvm::formatv("attention takes a mask of i1 or {0} that repeats to {1}, got {2} {3}",
                                     nameOf(query.dtype()), toString(scores), toString(mask.shape()),
                                     nameOf(mask.dtype())));
  if (!(options.dropout >= 0 && options.dropout < 1))
    return graph->fail("attention with dropout " + detail::numberText(options.dropout) +
                       "; it lies in [0, 1)");
  OpBuilder &builder = graph->builder;
  auto op = graph->emit<ir::AttentionOp>(
      graph->tensorType({q[0], q[1], q[2], v[3]}, query.dtype()),
      graph->tensorType({q[0], q[1], q[2]}, query.dtype() == DataType::f64 ? DataType::f64 : DataType::f32),
      Graph::unwrap(query), Graph::unwrap(key), Graph::unwrap(value), Graph::unwrap(mask),
      options.scale ? builder.getF64FloatAttr(*options.scale) : FloatAttr(),
      options.causal ? builder.getUnitAttr() : UnitAttr(), builder.getF64FloatAttr(options.dropout),
      builder.getI64IntegerAttr(options.dropout > 0 ? graph->nextRandomId() : 0));
  return graph->wrap(op.getResult());
}

} // namespace gpuc::nn
