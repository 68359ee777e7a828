//===- ReductionOps.cpp - Sums, means, softmax ---------------------------------===//

#include "frontend/onnx/Formulas.h"
#include "frontend/torch/OpTable.h"

#include <cmath>
#include <limits>

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

/// The root of a sum that may be 0, where PyTorch's gradient is 0.
Tensor rootOf(const Tensor &sum, double order = 2) {
  Tensor isZero = compare("eq", sum, 0), positive = select(isZero, like(sum, 1), sum);
  Tensor root = order == 2 ? unary("sqrt", positive) : binary("pow", positive, like(sum, 1 / order));
  return select(isZero, sum, root);
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
  op.output(root ? rootOf(variance) : variance);
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
  if (x && x.rank() == 0)
    x = reshape(x, {1});
  const int64_t dim = x ? dimension(x, op.integer("dim", 0)) : -1;
  if (dim < 0)
    return;
  Tensor index = unsqueeze(onnx::indexOfExtreme(x, dim, largest), {dim});
  Tensor chosen =
      compare("eq", onnx::iota(op.emitter, x.shape(), DataType::i64, dim), cast(index, DataType::i64));
  Tensor value = reduce("sum", select(chosen, x, like(x, 0)), {dim}, /*keep=*/true);
  op.output(reshape(value, op.shape()));
  op.output(reshape(cast(index, DataType::i64), op.shape()), 1);
}

/// max + log Σ exp(x - max), and without that max where it is infinite, as of a row that is all -inf.
void lowerLogSumExp(OpScope &op) {
  Tensor x = op.tensor("self");
  if (!x)
    return;
  const Shape dims = dimsOf(op, x);
  Tensor most = reduce("reduce_max", unary("stop_gradient", x), dims, /*keep=*/true);
  Tensor isInfinite = compare("eq", unary("abs", most), std::numeric_limits<double>::infinity());
  most = select(isInfinite, like(most, 0), most);
  Tensor sum = reduce("sum", unary("exp", x - most), dims, /*keep=*/true);
  op.output(reshape(most + unary("log", sum), op.shape()));
}

void lowerAlong(OpScope &op, const char *name) {
  Tensor x = cast(op.tensor("self"), op.type());
  if (x && x.rank() == 0)
    x = reshape(x, {1});
  op.output(reshape(along(name, x, op.integer("dim", -1)), op.shape()));
}

/// Of a row that is all -inf, 0, where softmax is NaN.
void lowerSafeSoftmax(OpScope &op) {
  Tensor x = cast(op.tensor("self"), op.type());
  const int64_t dim = x && x.rank() > 0 ? dimension(x, op.integer("dim", -1)) : -1;
  if (dim < 0)
    return void(op.fail("is of a tensor without dimensions"));
  Tensor most = reduce("reduce_max", unary("stop_gradient", x), {dim}, /*keep=*/true);
  Tensor isEmpty = broadcastTo(compare("eq", most, -std::numeric_limits<double>::infinity()), x.shape());
  Tensor rows = along("softmax", select(isEmpty, like(x, 0), x), dim);
  op.output(select(isEmpty, like(x, 0), rows));
}

/// |x|^p, p in (0, 1), whose gradient is 0 where x is, as PyTorch has it, and not infinite.
Tensor fractionalPower(Tensor x, double order) {
  Tensor isZero = compare("eq", x, 0);
  Tensor power = binary("pow", unary("abs", select(isZero, like(x, 1), x)), like(x, order));
  return select(isZero, like(x, 0), power);
}

/// (Σ |x|^p)^(1/p), as torch.linalg.vector_norm; the largest where p is infinite, how many are not 0 where it
/// is 0.
void lowerNorm(OpScope &op) {
  Tensor x = cast(op.tensor("self"), op.type());
  const double order = op.number(op.has("ord") ? "ord" : "p", 2);
  if (!x)
    return;
  const Shape dims = dimsOf(op, x);
  const bool keep = op.flag("keepdim", false);
  Tensor size = unary("abs", x);
  if (std::isinf(order))
    return op.output(reduce(order > 0 ? "reduce_max" : "reduce_min", size, dims, keep));
  if (order < 0)
    return void(
        op.fail("is the norm of order " + std::to_string(order) + ": negative ones are not supported"));
  Tensor terms = order == 0   ? cast(compare("ne", x, 0), x.type())
                 : order == 1 ? size
                 : order == 2 ? x * x
                 : order < 1  ? fractionalPower(x, order)
                              : binary("pow", size, like(x, order));
  Tensor sum = reduce("sum", terms, dims, keep);
  op.output(order > 1                  ? rootOf(sum, order)
            : order == 1 || order == 0 ? sum
                                       : binary("pow", sum, like(sum, 1 / order)));
}

/// Of the flattened tensor where no dimension is given.
void lowerArgExtreme(OpScope &op, bool largest) {
  Tensor x = op.tensor("self");
  if (x && (!op.has("dim") || x.rank() == 0))
    x = reshape(x, {onnx::countOf(x.shape(), 0, x.rank())});
  const int64_t dim = x ? dimension(x, op.integer("dim", 0)) : -1;
  if (dim >= 0)
    op.output(reshape(cast(onnx::indexOfExtreme(x, dim, largest), DataType::i64), op.shape()));
}

/// Whether any is true, or all are.
void lowerQuantifier(OpScope &op, const char *name) {
  Tensor x = op.tensor("self");
  if (!x)
    return;
  Tensor isTrue = cast(x.type() == DataType::i1 ? x : compare("ne", x, 0), DataType::i32);
  op.output(compare("ne", reduce(name, isTrue, dimsOf(op, x), op.flag("keepdim", false)), 0));
}

void lowerCumProd(OpScope &op) {
  Tensor x = cast(op.tensor("self"), op.type());
  if (x && x.rank() == 0)
    return op.output(x);
  const int64_t dim = x ? dimension(x, op.integer("dim", 0)) : -1;
  if (dim >= 0)
    op.output(onnx::runningProduct(x, dim));
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
  table["linalg_vector_norm.default"] = {lowerNorm, {"self", "ord", "dim", "keepdim", "dtype"}};
  table["softmax.int"] = {[](OpScope &op) { lowerAlong(op, "softmax"); }, {"self", "dim", "dtype"}};
  table["_safe_softmax.default"] = {lowerSafeSoftmax, {"self", "dim", "dtype"}};
  table["log_softmax.int"] = {[](OpScope &op) { lowerAlong(op, "log_softmax"); }, {"self", "dim", "dtype"}};
  table["cumsum.default"] = {[](OpScope &op) { lowerAlong(op, "cumsum"); }, {"self", "dim", "dtype"}};
  table["cumprod.default"] = {lowerCumProd, {"self", "dim", "dtype"}};
  table["argmax.default"] = {[](OpScope &op) { lowerArgExtreme(op, true); }, {"self", "dim", "keepdim"}};
  table["argmin.default"] = {[](OpScope &op) { lowerArgExtreme(op, false); }, {"self", "dim", "keepdim"}};
  table["prod.default"] = {[](OpScope &op) { lowerReduce(op, "prod"); }, all};
  table["prod.dim_int"] = {[](OpScope &op) { lowerReduce(op, "prod"); }, some};
  for (const char *overload : {".default", ".dim", ".dims"}) {
    table[std::string("any") + overload] = {[](OpScope &op) { lowerQuantifier(op, "reduce_max"); },
                                            {"self", "dim", "keepdim"}};
    table[std::string("all") + overload] = {[](OpScope &op) { lowerQuantifier(op, "reduce_min"); },
                                            {"self", "dim", "keepdim"}};
  }
}

} // namespace gpuc::torch
