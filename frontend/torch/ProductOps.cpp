//===- ProductOps.cpp - Matrix products and attention --------------------------===//

#include "frontend/torch/OpTable.h"

namespace gpuc::torch {
namespace {

/// x · weightᵀ + bias, over whatever leads.
void lowerLinear(OpScope &op) {
  Tensor x = op.tensor("input"), weight = op.tensor("weight");
  if (!x || !weight)
    return;
  const bool row = x.rank() == 1;
  Tensor result = matmul(row ? unsqueeze(x, {0}) : x, weight, false, /*transposeRhs=*/true);
  if (op.has("bias"))
    result = result + op.tensor("bias");
  op.output(row ? reshape(result, op.shape()) : result);
}

Tensor withLeading(const Tensor &x, Shape lead) {
  lead.insert(lead.end(), {x.extent(x.rank() - 2), x.extent(x.rank() - 1)});
  return broadcastTo(x, lead);
}

/// As numpy.matmul: one dimension counts as a row or column, leading dimensions are broadcast.
Tensor product(OpScope &op, Tensor lhs, Tensor rhs) {
  if (!lhs || !rhs || lhs.rank() == 0 || rhs.rank() == 0)
    return {};
  if (!lhs.isFloat())
    return op.fail("is a product of integers, which are not multiplied as matrices: cast them");
  lhs = lhs.rank() == 1 ? unsqueeze(lhs, {0}) : lhs;
  rhs = rhs.rank() == 1 ? unsqueeze(rhs, {1}) : rhs;
  if (rhs.rank() == 2 && lhs.rank() > 2)
    return reshape(matmul(lhs, rhs), op.shape());
  auto leading = [](const Tensor &x) {
    const Shape shape = x.shape();
    return Shape(shape.begin(), shape.end() - 2);
  };
  std::optional<Shape> lead = onnx::broadcastShapes(op.emitter, leading(lhs), leading(rhs));
  return lead ? reshape(matmul(withLeading(lhs, *lead), withLeading(rhs, *lead)), op.shape()) : Tensor();
}

/// beta · self + alpha · mat1 · mat2.
void lowerAddmm(OpScope &op) {
  const bool isBatched = op.has("batch1");
  Tensor result =
      product(op, op.tensor(isBatched ? "batch1" : "mat1"), op.tensor(isBatched ? "batch2" : "mat2"));
  const double beta = op.number("beta", 1), alpha = op.number("alpha", 1);
  Tensor self = op.tensor("self");
  op.output((beta == 1 ? self : self * beta) + (alpha == 1 ? result : result * alpha));
}

/// gpuc's attention has four dimensions; leading ones count as the batch, or are put in.
Tensor fourDims(const Tensor &x) {
  const Shape shape = x.shape();
  if (x.rank() < 3 || x.rank() == 4)
    return x;
  const size_t rank = shape.size();
  return reshape(x, {onnx::countOf(shape, 0, rank - 3), shape[rank - 3], shape[rank - 2], shape[rank - 1]});
}

void lowerAttention(OpScope &op) {
  Tensor q = op.tensor("query"), k = op.tensor("key"), v = op.tensor("value");
  if (!q || !k || !v)
    return;
  if (q.rank() < 3)
    return void(op.fail("query of shape " + toString(q.shape()) + " has no dimension of heads: put one in"));
  Emitter &e = op.emitter;
  std::vector<Tensor> operands = {fourDims(q), fourDims(k), fourDims(v)};
  if (op.has("attn_mask"))
    operands.push_back(op.tensor("attn_mask"));
  if (operands.size() == 4 && q.rank() > 4)
    return void(op.fail("has a mask and more than four dimensions: reshape to four"));
  std::vector<mlir::NamedAttribute> attributes;
  if (op.flag("is_causal", false))
    attributes.push_back(e.flag("causal"));
  if (op.has("scale"))
    attributes.push_back(e.attribute("scale", op.number("scale", 1)));
  if (const double p = op.number("dropout_p", 0); p != 0) {
    attributes.push_back(e.attribute("dropout", p));
    attributes.push_back(e.attribute("id", op.nextRandomId()));
  }
  std::vector<Tensor> results = e.emit("attention", operands, attributes);
  if (!results.empty())
    op.output(reshape(results.front(), op.shape()));
}

} // namespace

void addProducts(OpTable &table) {
  table["linear.default"] = {lowerLinear, {"input", "weight", "bias"}};
  table["matmul.default"] = {
      [](OpScope &op) { op.output(product(op, op.tensor("self"), op.tensor("other"))); }, {"self", "other"}};
  for (const char *name : {"mm.default", "bmm.default"})
    table[name] = {[](OpScope &op) { op.output(product(op, op.tensor("self"), op.tensor("mat2"))); },
                   {"self", "mat2"}};
  table["addmm.default"] = {lowerAddmm, {"self", "mat1", "mat2", "beta", "alpha"}};
  table["baddbmm.default"] = {lowerAddmm, {"self", "batch1", "batch2", "beta", "alpha"}};
  table["scaled_dot_product_attention.default"] = {
      lowerAttention,
      {"query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa"}};
}

} // namespace gpuc::torch
