//===- ReductionOps.cpp - Reductions, orders and running sums ---------------===//

#include "frontend/onnx/Formulas.h"
#include "frontend/onnx/ops/OpTable.h"

#include <algorithm>
#include <limits>

namespace gpuc::onnx {
namespace {

/// What a Reduce… op reduces over, resolved.
struct Reduction {
  Tensor x;
  Shape dims;
  bool keep = true;
  bool nothing = false; ///< noop_with_empty_axes: elementwise parts of the op still apply.
};

Reduction readReduction(NodeScope &node) {
  Reduction made{node.input(0), {}, node.integer("keepdims", 1) != 0};
  std::optional<Shape> axes = node.attributeOrInput("axes", 1);
  if (axes && !axes->empty()) {
    for (int64_t axis : *axes)
      made.dims.push_back(dimension(made.x, axis));
    std::sort(made.dims.begin(), made.dims.end());
    if (std::adjacent_find(made.dims.begin(), made.dims.end()) != made.dims.end())
      node.fail("axes " + toString(*axes) + " name a dimension twice");
  } else if (node.integer("noop_with_empty_axes", 0)) {
    made.nothing = true;
  } else {
    made.dims = dimsFrom(0, made.x.rank());
  }
  return made;
}

Tensor apply(const Reduction &over, const char *name, const Tensor &x) {
  return over.nothing ? x : reduce(name, x, over.dims, over.keep);
}

Tensor sum(const Reduction &over, const Tensor &x) { return apply(over, "sum", x); }

int64_t countOf(const Reduction &over) {
  int64_t count = 1;
  for (int64_t dim : over.dims)
    count *= over.x.extent(dim);
  return count;
}

Tensor mean(const Reduction &over) {
  if (over.nothing)
    return over.x;
  if (over.x.isFloat())
    return apply(over, "mean", over.x);
  if (over.x.hasBatch() && std::count(over.dims.begin(), over.dims.end(), 0))
    return over.x.emitter()->fail(
        "the mean of integers over the batch, which is open: bind it with --dim NAME=N");
  return sum(over, over.x) / static_cast<double>(std::max<int64_t>(countOf(over), 1));
}

/// Over no elements the greatest is the least number there is, and the other way round.
template <bool greatest> Tensor extreme(const Reduction &over) {
  const DataType type = over.x.type();
  if (over.nothing)
    return over.x;
  if (!over.x.hasBatch() && countOf(over) == 0 && over.x.isFloat()) {
    double infinity = std::numeric_limits<double>::infinity();
    return like(sum(over, over.x), greatest ? -infinity : infinity);
  }
  // Truth values are numbers to gpuc's reductions.
  Tensor numbers = type == DataType::i1 ? cast(over.x, DataType::i32) : over.x;
  return cast(apply(over, greatest ? "reduce_max" : "reduce_min", numbers), type);
}

/// The greatest is taken off first, so that nothing overflows; where it is infinite, nothing is.
Tensor logSumExp(const Reduction &over) {
  if (over.nothing)
    return over.x;
  Reduction kept = over;
  kept.keep = true;
  Tensor top = extreme</*greatest=*/true>(kept), finite = unary("is_finite", top);
  Tensor shift = select(finite, top, like(top, 0));
  Tensor total = unary("log", sum(kept, unary("exp", over.x - shift))) + shift;
  return over.keep ? total : reshape(total, sum(over, over.x).shape());
}

Tensor squares(const Reduction &over) { return sum(over, over.x * over.x); }

Tensor rootOf(const Tensor &x) {
  return x.isFloat() ? unary("sqrt", x) : cast(unary("sqrt", cast(x, DataType::f64)), x.type());
}

Tensor l1(const Reduction &over) { return sum(over, unary("abs", over.x)); }
Tensor l2(const Reduction &over) { return rootOf(squares(over)); }
Tensor product(const Reduction &over) { return apply(over, "prod", over.x); }
Tensor total(const Reduction &over) { return sum(over, over.x); }
Tensor logSum(const Reduction &over) { return unary("log", total(over)); }

template <Tensor (*function)(const Reduction &over)> void lowerReduce(NodeScope &node) {
  Reduction over = readReduction(node);
  if (!node.failed())
    node.output(function(over));
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

template <bool largest> void lowerArg(NodeScope &node) {
  Tensor x = node.input(0);
  int64_t dim = dimension(x, node.integer("axis", 0));
  if (dim < 0)
    return;
  const bool last = node.integer("select_last_index", 0);
  Tensor index = indexOfExtreme(last ? reverse(x, {dim}) : x, dim, largest);
  if (last)
    index = static_cast<double>(x.extent(dim) - 1) - index;
  node.output(node.integer("keepdims", 1) ? unsqueeze(index, {dim}) : index);
}

void lowerTopK(NodeScope &node) {
  Tensor x = node.input(0);
  std::optional<double> k = node.requireNumber(1, "k");
  int64_t dim = dimension(x, node.integer("axis", -1));
  if (!k || dim < 0)
    return;
  // Sorted output is one of the orders that sorted=0 allows.
  std::vector<Tensor> results = topK(x, dim, static_cast<int64_t>(*k), node.integer("largest", 1) != 0);
  for (size_t i = 0; i < results.size(); ++i)
    node.output(results[i], i);
}

/// The dimension that input 1 names; -1 after an error.
int64_t axisOf(NodeScope &node, const Tensor &x) {
  std::optional<double> axis = node.requireNumber(1, "axis");
  return axis ? dimension(x, static_cast<int64_t>(*axis)) : -1;
}

void lowerCumSum(NodeScope &node) {
  Tensor x = node.input(0);
  const int64_t dim = axisOf(node, x);
  if (dim < 0)
    return;
  const bool backwards = node.integer("reverse", 0);
  if (backwards)
    x = reverse(x, {dim});
  Tensor sums = along("cumsum", x, dim);
  if (node.integer("exclusive", 0)) {
    Shape low(x.rank(), 0), high(x.rank(), 0);
    low[dim] = 1;
    sums = pad(slice(sums, dim, 0, x.extent(dim) - 1), low, high, 0);
  }
  node.output(backwards ? reverse(sums, {dim}) : sums);
}

void lowerCumProd(NodeScope &node) {
  Tensor x = node.input(0);
  const int64_t dim = axisOf(node, x);
  if (dim >= 0)
    node.output(runningProduct(x, dim, node.integer("exclusive", 0) != 0, node.integer("reverse", 0) != 0));
}

} // namespace

void addReductions(OpTable &table) {
  const std::vector<std::string> reduction = {"axes", "keepdims", "noop_with_empty_axes"};
  table["ReduceSum"] = {lowerReduce<total>, reduction};
  table["ReduceMean"] = {lowerReduce<mean>, reduction};
  table["ReduceProd"] = {lowerReduce<product>, reduction};
  table["ReduceMax"] = {lowerReduce<extreme<true>>, reduction};
  table["ReduceMin"] = {lowerReduce<extreme<false>>, reduction};
  table["ReduceL1"] = {lowerReduce<l1>, reduction};
  table["ReduceL2"] = {lowerReduce<l2>, reduction};
  table["ReduceSumSquare"] = {lowerReduce<squares>, reduction};
  table["ReduceLogSum"] = {lowerReduce<logSum>, reduction};
  table["ReduceLogSumExp"] = {lowerReduce<logSumExp>, reduction};
  table["ArgMax"] = {lowerArg<true>, {"axis", "keepdims", "select_last_index"}};
  table["ArgMin"] = {lowerArg<false>, {"axis", "keepdims", "select_last_index"}};
  table["TopK"] = {lowerTopK, {"axis", "largest", "sorted"}};
  table["CumProd"] = {lowerCumProd, {"exclusive", "reverse"}};
  table["CumSum"] = {lowerCumSum, {"exclusive", "reverse"}};
}

} // namespace gpuc::onnx
