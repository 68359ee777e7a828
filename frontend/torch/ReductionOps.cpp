//===- ReductionOps.cpp - Sums, means, softmax ---------------------------------===//

#include "frontend/torch/OpTable.h"

namespace gpuc::torch {
namespace {

/// Of all dimensions if none are given.
Shape dimsOf(OpScope &op, const Tensor &x) {
  Shape dims = op.integers("dim", onnx::dimsFrom(0, x.rank()), 1);
  for (int64_t &dim : dims)
    dim = x.rank() == 0 ? 0 : dimension(x, dim);
  return x.rank() == 0 ? Shape() : dims;
}

void lowerReduce(OpScope &op, const char *name) {
  Tensor x = cast(op.tensor("self"), op.type());
  if (x)
    op.output(reduce(name, x, dimsOf(op, x), op.flag("keepdim", false)));
}

/// Σ (x - mean)² / (n - correction), and its root.
void lowerVariance(OpScope &op, bool root) {
  Tensor x = op.tensor("self");
  if (!x)
    return;
  const Shape dims = dimsOf(op, x);
  double correction = op.number("correction", op.flag("unbiased", true) ? 1 : 0), count = 1;
  for (int64_t dim : dims)
    count *= static_cast<double>(x.extent(dim));
  if (count - correction <= 0)
    return void(op.fail("has no more elements than its correction, which is a division by zero"));
  Tensor centred = x - reduce("mean", x, dims, /*keep=*/true);
  Tensor sum = reduce("sum", centred * centred, dims, op.flag("keepdim", false));
  Tensor variance = sum / (count - correction);
  op.output(root ? unary("sqrt", variance) : variance);
}

/// And the mean beside it.
void lowerWithMean(OpScope &op, bool root) {
  lowerVariance(op, root);
  Tensor x = op.tensor("self");
  if (x)
    op.output(reduce("mean", x, dimsOf(op, x), op.flag("keepdim", false)), 1);
}

/// The element that is found first, and where: the gradient is its alone, where amax shares it out.
void lowerExtreme(OpScope &op, bool largest) {
  Tensor x = op.tensor("self");
  const int64_t dim = x && x.rank() > 0 ? dimension(x, op.integer("dim", 0)) : -1;
  if (dim < 0)
    return void(op.fail("is of a tensor without dimensions: leave it out"));
  Tensor index = unsqueeze(along("argmax", largest ? x : unary("neg", x), dim), {dim});
  Tensor chosen =
      compare("eq", onnx::iota(op.emitter, x.shape(), DataType::i64, dim), cast(index, DataType::i64));
  Tensor value = reduce("sum", select(chosen, x, like(x, 0)), {dim}, /*keep=*/true);
  op.output(reshape(value, op.shape()));
  op.output(reshape(cast(index, DataType::i64), op.shape()), 1);
}

/// max + log Σ exp(x - max).
void lowerLogSumExp(OpScope &op) {
  Tensor x = op.tensor("self");
  if (!x)
    return;
  const Shape dims = dimsOf(op, x);
  Tensor most = reduce("reduce_max", unary("stop_gradient", x), dims, /*keep=*/true);
  Tensor sum = reduce("sum", unary("exp", x - most), dims, /*keep=*/true);
  op.output(reshape(most + unary("log", sum), op.shape()));
}

void lowerAlong(OpScope &op, const char *name) {
  Tensor x = cast(op.tensor("self"), op.type());
  op.output(along(name, x, op.integer("dim", -1)));
}

/// The 2-norm, as torch.linalg.vector_norm.
void lowerNorm(OpScope &op) {
  Tensor x = op.tensor("self");
  const double ord = op.number(op.has("ord") ? "ord" : "p", 2);
  if (!x)
    return;
  if (ord != 2 && ord != 1)
    return void(op.fail("is the norm of order " + std::to_string(ord) + ": 1 and 2 are supported"));
  Tensor terms = ord == 2 ? x * x : unary("abs", x);
  Tensor sum = reduce("sum", terms, dimsOf(op, x), op.flag("keepdim", false));
  op.output(ord == 2 ? unary("sqrt", sum) : sum);
}

void lowerArgmax(OpScope &op) {
  Tensor x = op.tensor("self");
  if (!op.has("dim"))
    return void(op.fail("is of the flattened tensor: give dim"));
  Tensor index = along("argmax", x, op.integer("dim", 0));
  op.output(reshape(cast(index, DataType::i64), op.shape()));
}

} // namespace

void addReductions(OpTable &table) {
  const std::vector<std::string> all = {"self", "dtype"}, some = {"self", "dim", "keepdim", "dtype"};
  table["sum.default"] = {[](OpScope &op) { lowerReduce(op, "sum"); }, all};
  table["sum.dim_IntList"] = {[](OpScope &op) { lowerReduce(op, "sum"); }, some};
  table["mean.default"] = {[](OpScope &op) { lowerReduce(op, "mean"); }, all};
  table["mean.dim"] = {[](OpScope &op) { lowerReduce(op, "mean"); }, some};
  table["amax.default"] = {[](OpScope &op) { lowerReduce(op, "reduce_max"); }, {"self", "dim", "keepdim"}};
  table["amin.default"] = {[](OpScope &op) { lowerReduce(op, "reduce_min"); }, {"self", "dim", "keepdim"}};
  table["var.correction"] = {[](OpScope &op) { lowerVariance(op, false); },
                             {"self", "dim", "correction", "keepdim"}};
  table["std.correction"] = {[](OpScope &op) { lowerVariance(op, true); },
                             {"self", "dim", "correction", "keepdim"}};
  for (const char *overload : {".default", ".dim"}) {
    table[std::string("var") + overload] = {[](OpScope &op) { lowerVariance(op, false); },
                                            {"self", "dim", "unbiased", "keepdim"}};
    table[std::string("std") + overload] = {[](OpScope &op) { lowerVariance(op, true); },
                                            {"self", "dim", "unbiased", "keepdim"}};
  }
  table["var_mean.correction"] = {[](OpScope &op) { lowerWithMean(op, false); },
                                  {"self", "dim", "correction", "keepdim"}};
  table["std_mean.correction"] = {[](OpScope &op) { lowerWithMean(op, true); },
                                  {"self", "dim", "correction", "keepdim"}};
  table["max.dim"] = {[](OpScope &op) { lowerExtreme(op, true); }, {"self", "dim", "keepdim"}};
  table["min.dim"] = {[](OpScope &op) { lowerExtreme(op, false); }, {"self", "dim", "keepdim"}};
  table["max.default"] = {[](OpScope &op) { lowerReduce(op, "reduce_max"); }, {"self"}};
  table["min.default"] = {[](OpScope &op) { lowerReduce(op, "reduce_min"); }, {"self"}};
  table["logsumexp.default"] = {lowerLogSumExp, {"self", "dim", "keepdim"}};
  table["linalg_vector_norm.default"] = {lowerNorm, {"self", "ord", "dim", "keepdim"}};
  table["softmax.int"] = {[](OpScope &op) { lowerAlong(op, "softmax"); }, {"self", "dim", "dtype"}};
  table["log_softmax.int"] = {[](OpScope &op) { lowerAlong(op, "log_softmax"); }, {"self", "dim", "dtype"}};
  table["cumsum.default"] = {[](OpScope &op) { lowerAlong(op, "cumsum"); }, {"self", "dim", "dtype"}};
  table["argmax.default"] = {lowerArgmax, {"self", "dim", "keepdim"}};
}

} // namespace gpuc::torch
