//===- Norms.cpp - Normalisation, as functions and as layers -----------------===//

#include "frontend/builder/Norms.h"
#include "frontend/builder/Graph.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpuc::nn {

using detail::Graph;

namespace {

/// x, and those of `others` that are given, are floating point of one element type.
bool areFloats(const char *name, const Tensor &x, ArrayRef<const Tensor *> others) {
  if (!x.graph() || !x.graph()->usable(name, {&x}))
    return false;
  for (const Tensor *other : others)
    if (other->graph() && !x.graph()->usable(name, {other}))
      return false;
  for (const Tensor *other : others)
    if (other->graph() && other->dtype() != x.dtype())
      return x.graph()->fail(
          llvm::formatv("{0} takes tensors of one element type, got {1} and {2}; convert one "
                        "with to()",
                        name, nameOf(x.dtype()), nameOf(other->dtype())));
  return x.graph()->isFloating(name, x);
}

/// Each of `tensors` that is given has this shape; `name` and `what` are for the message.
bool haveShape(const char *name, const Tensor &x, const Shape &expected, ArrayRef<const Tensor *> tensors) {
  for (const Tensor *tensor : tensors)
    if (tensor->graph() && tensor->shape() != expected)
      return x.graph()->fail(llvm::formatv("{0} of {1} takes weight, bias and statistics {2}, got {3}", name,
                                           toString(x.shape()), toString(expected),
                                           toString(tensor->shape())));
  return true;
}

/// `dim` from the front, if x can be normalised over it and all after it.
std::optional<int64_t> firstDimension(const char *name, const Tensor &x, int64_t dim) {
  std::optional<int64_t> first = Graph::dimension(name, x, dim);
  if (first && x.shape()[*first] == kBatch)
    return x.graph()->fail(llvm::formatv("{0} of {1} over the batch: samples do not know their neighbours",
                                         name, toString(x.shape())));
  return first;
}

/// Statistics of half precision are f32.
RankedTensorType statisticType(Graph &graph, DataType type, const Shape &shape) {
  return graph.tensorType(shape, type == DataType::f64 ? DataType::f64 : DataType::f32);
}

Shape tail(const Shape &shape, int64_t first) { return Shape(shape.begin() + first, shape.end()); }

/// [channels] beside dimension 1 of a tensor of this rank: [channels, 1, …].
Tensor besideChannels(const Tensor &affine, int64_t rank) {
  Shape shape(rank - 1, 1);
  shape.front() = affine.shape().front();
  return reshape(affine, shape);
}

} // namespace

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Tensor layerNorm(const Tensor &x, int64_t dim, const Tensor &weight, const Tensor &bias, double eps) {
  if (!areFloats("layerNorm", x, {&weight, &bias}))
    return {};
  std::optional<int64_t> first = firstDimension("layerNorm", x, dim);
  if (!first || !haveShape("layerNorm", x, tail(x.shape(), *first), {&weight, &bias}))
    return {};
  Graph &graph = *x.graph();
  const Shape shape = x.shape();
  Type rows = statisticType(graph, x.dtype(), Shape(shape.begin(), shape.begin() + *first));
  auto op = graph.emit<ir::LayerNormOp>(graph.tensorType(shape, x.dtype()), rows, rows, Graph::unwrap(x),
                                        Graph::unwrap(weight), Graph::unwrap(bias),
                                        static_cast<uint64_t>(*first), APFloat(eps));
  return graph.wrap(op.getResult());
}

Tensor rmsNorm(const Tensor &x, int64_t dim, const Tensor &weight, double eps) {
  if (!areFloats("rmsNorm", x, {&weight}))
    return {};
  std::optional<int64_t> first = firstDimension("rmsNorm", x, dim);
  if (!first || !haveShape("rmsNorm", x, tail(x.shape(), *first), {&weight}))
    return {};
  Graph &graph = *x.graph();
  const Shape shape = x.shape();
  Type rows = statisticType(graph, x.dtype(), Shape(shape.begin(), shape.begin() + *first));
  auto op = graph.emit<ir::RmsNormOp>(graph.tensorType(shape, x.dtype()), rows, Graph::unwrap(x),
                                      Graph::unwrap(weight), static_cast<uint64_t>(*first), APFloat(eps));
  return graph.wrap(op.getResult());
}

Tensor groupNorm(const Tensor &x, int64_t groups, const Tensor &weight, const Tensor &bias, double eps) {
  if (!areFloats("groupNorm", x, {&weight, &bias}))
    return {};
  const Shape shape = x.shape();
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0)
    return x.graph()->fail(llvm::formatv(
        "groupNorm of {0} in {1} groups: they divide dimension 1, the channels", toString(shape), groups));
  if (!haveShape("groupNorm", x, {shape[1]}, {&weight, &bias}))
    return {};
  Tensor y = reshape(layerNorm(reshape(x, {shape[0], groups, -1}), 2, {}, {}, eps), shape);
  if (weight.graph())
    y = y * besideChannels(weight, x.rank());
  return bias.graph() ? y + besideChannels(bias, x.rank()) : y;
}

BatchNormalized batchNorm(const Tensor &x, const Tensor &runningMean, const Tensor &runningVariance,
                          const Tensor &weight, const Tensor &bias, double momentum, double eps) {
  if (!areFloats("batchNorm", x, {&weight, &bias}) ||
      !x.graph()->usable("batchNorm", {&runningMean, &runningVariance}))
    return {};
  Graph &graph = *x.graph();
  const Shape shape = x.shape();
  if (shape.size() < 2)
    return graph.fail("batchNorm takes [batch, channels, …], got " + toString(shape));
  if (!haveShape("batchNorm", x, {shape[1]}, {&runningMean, &runningVariance, &weight, &bias}))
    return {};
  Type statistic = statisticType(graph, x.dtype(), {shape[1]});
  auto op = graph.emit<ir::BatchNormOp>(
      graph.tensorType(shape, x.dtype()), statistic, statistic, statistic, statistic, Graph::unwrap(x),
      Graph::unwrap(runningMean), Graph::unwrap(runningVariance), Graph::unwrap(weight), Graph::unwrap(bias),
      /*rows=*/mlir::Value(), APFloat(momentum), APFloat(eps));
  return {graph.wrap(op.getResult()), graph.wrap(op.getNewRunningMean()),
          graph.wrap(op.getNewRunningVariance())};
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

std::string Norm::describe() const {
  return text_ + (eps_ == 1e-5 ? "" : ", eps=" + detail::numberText(eps_)) +
         (affine_ ? ")" : ", affine=false)");
}

Tensor Norm::weight(const Tensor &x) {
  return affine_ ? parameter(x, "weight", shape_, Initializer::ones()) : Tensor();
}

Tensor Norm::bias(const Tensor &x) {
  return affine_ && bias_ ? parameter(x, "bias", shape_, Initializer::zeros()) : Tensor();
}

Tensor LayerNorm::forward(const Tensor &x) {
  Tensor w = weight(x), b = bias(x);
  return layerNorm(x, -static_cast<int64_t>(shape_.size()), w, b, eps_);
}

Tensor RMSNorm::forward(const Tensor &x) {
  return rmsNorm(x, -static_cast<int64_t>(shape_.size()), weight(x), eps_);
}

Tensor GroupNorm::forward(const Tensor &x) {
  Tensor w = weight(x), b = bias(x);
  return groupNorm(x, groups_, w, b, eps_);
}

Tensor BatchNorm::forward(const Tensor &x) {
  Tensor w = weight(x), b = bias(x);
  const DataType floats = x.graph()->floats;
  Tensor mean = statistic(x, "running_mean", shape_, floats, Initializer::zeros());
  Tensor variance = statistic(x, "running_var", shape_, floats, Initializer::ones());
  Tensor batches = statistic(x, "num_batches_tracked", {}, DataType::i64, Initializer::zeros());
  BatchNormalized normalized = batchNorm(x, mean, variance, w, b, momentum_, eps_);
  if (!normalized.y.valid() || !batches.valid())
    return {};
  Graph &graph = *x.graph();
  Tensor one = graph.emitTensor<ir::ConstantOp>(graph.scalarType(DataType::i64), 1.0);
  assign("running_mean", normalized.runningMean);
  assign("running_var", normalized.runningVariance);
  assign("num_batches_tracked", batches + one);
  return normalized.y;
}

} // namespace gpuc::nn
