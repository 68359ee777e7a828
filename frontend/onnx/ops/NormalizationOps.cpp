//===- NormalizationOps.cpp - Normalizations and dropout --------------------===//

#include "frontend/onnx/Importer.h"
#include "frontend/onnx/ops/OpTable.h"

#include <algorithm>

namespace gpuc::onnx {
namespace {

/// One number a channel of x.
Tensor perChannel(const Tensor &vector, const Tensor &x) { return beside(vector, 1, x.rank()); }

struct Moments {
  Tensor centred, mean, variance;
};

/// Over `dims`, which stay with extent 1; the variance is divided by the number of elements.
Moments momentsOf(const Tensor &x, const Shape &dims) {
  Moments made;
  made.mean = reduce("mean", x, dims, /*keep=*/true);
  made.centred = x - made.mean;
  made.variance = reduce("mean", made.centred * made.centred, dims, /*keep=*/true);
  return made;
}

Tensor normalize(const Tensor &centred, const Tensor &variance, double epsilon) {
  return centred * unary("rsqrt", variance + epsilon);
}

/// Statistics are taken in f32 at least (`stash_type`).
DataType stashType(NodeScope &node, DataType type) {
  if (int64_t asked = node.integer("stash_type", 1); asked != 1 && asked != 11)
    node.fail("attribute 'stash_type' = " + std::to_string(asked) + ": 1 (f32) or 11 (f64)");
  return type == DataType::f16 || type == DataType::bf16 ? DataType::f32 : type;
}

/// Whether gpuc's own normalisation over the dimensions from `axis` on takes x and these; it does not
/// broadcast them.
bool isWhole(const Tensor &x, int64_t axis, const std::vector<Tensor> &affine) {
  Shape shape = x.shape(), tail(shape.begin() + axis, shape.end());
  bool whole = x.isFloat() && sizeOf(x.type()) >= 4 && tail.front() != kBatch &&
               !std::count(tail.begin(), tail.end(), 0);
  for (const Tensor &each : affine)
    whole &= each.shape() == tail && each.type() == x.type();
  return whole;
}

void lowerLayerNormalization(NodeScope &node) {
  Tensor x = node.input(0), scale = node.input(1);
  int64_t axis = dimension(x, node.integer("axis", -1));
  if (axis < 0)
    return;
  const DataType type = x.type(), stash = stashType(node, type);
  std::vector<Tensor> affine = {scale};
  if (node.has(2))
    affine.push_back(node.input(2));
  if (isWhole(x, axis, affine) && stash == type && !node.wants(1) && !node.wants(2)) {
    Emitter &e = node.emitter;
    std::vector<Tensor> operands = {x};
    operands.insert(operands.end(), affine.begin(), affine.end());
    return node.output(e.op("layer_norm", operands,
                            {e.attribute("dim", axis), e.attribute("eps", node.number("epsilon", 1e-5)),
                             e.segments({1, 1, static_cast<int32_t>(affine.size()) - 1})}));
  }
  Moments moments = momentsOf(cast(x, stash), dimsFrom(axis, x.rank()));
  Tensor inverse = unary("rsqrt", moments.variance + node.number("epsilon", 1e-5));
  Tensor result = cast(moments.centred * inverse, type) * scale;
  if (node.has(2))
    result = result + node.input(2);
  node.output(result);
  if (node.wants(1))
    node.output(moments.mean, 1);
  if (node.wants(2))
    node.output(inverse, 2);
}

void lowerRmsNormalization(NodeScope &node) {
  Tensor x = node.input(0), scale = node.input(1);
  int64_t axis = dimension(x, node.integer("axis", -1));
  if (axis < 0)
    return;
  const DataType type = x.type();
  Tensor wide = cast(x, stashType(node, type));
  Emitter &e = node.emitter;
  if (isWhole(x, axis, {scale}))
    return node.output(e.op("rms_norm", {x, scale},
                            {e.attribute("dim", axis), e.attribute("eps", node.number("epsilon", 1e-5))}));
  Tensor square = reduce("mean", wide * wide, dimsFrom(axis, x.rank()), /*keep=*/true);
  node.output(cast(normalize(wide, square, node.number("epsilon", 1e-5)), type) * scale);
}

void lowerInstanceNormalization(NodeScope &node) {
  Tensor x = node.input(0);
  Moments moments = momentsOf(x, dimsFrom(2, x.rank()));
  Tensor result = normalize(moments.centred, moments.variance, node.number("epsilon", 1e-5));
  node.output(result * perChannel(node.input(1), x) + perChannel(node.input(2), x));
}

void lowerGroupNormalization(NodeScope &node) {
  Tensor x = node.input(0), scale = node.input(1), bias = node.input(2);
  Shape shape = x.shape();
  const int64_t groups = node.integer("num_groups", 1);
  if (shape.size() < 3 || groups < 1 || shape[1] % groups != 0)
    return void(node.fail(std::to_string(groups) + " groups of shape " + toString(shape)));
  Shape grouped = shape;
  grouped[1] = shape[1] / groups;
  grouped.insert(grouped.begin() + 1, groups);
  Tensor parts = reshape(x, grouped);
  Moments moments = momentsOf(parts, dimsFrom(2, parts.rank()));
  Tensor result = normalize(moments.centred, moments.variance, node.number("epsilon", 1e-5));
  if (node.importer().opset() < 21) { // One number a group, later one a channel.
    result = result * perChannel(scale, parts) + perChannel(bias, parts);
    return node.output(reshape(result, shape));
  }
  result = reshape(result, shape);
  node.output(result * perChannel(scale, x) + perChannel(bias, x));
}

/// Exporters write the momentum of one moment, and these two of PyTorch's momentum=None, a mean of all
/// batches whose count no file holds: a fresh layer's in inference and in training.
void warnOfMomentum(NodeScope &node, double momentum) {
  if (momentum != 0 && momentum != 1)
    return;
  node.importer().say(
      std::string(momentum == 1 ? "trained without a change to these running statistics"
                                : "trained with the last batch alone as running statistics") +
          ", as their momentum in the file says; momentum=None, which no file can hold, looks "
          "like this too: export it as a number, such as 0.1",
      node.operand(3).name);
}

/// A layer of weights: gpuc.batch_norm, which outside of training is ONNX's inference and in training what
/// PyTorch's layer does, whichever of the two the model was exported for. ONNX's momentum is what stays of
/// the old statistic, gpuc's what comes of the new.
void lowerBatchNormLayer(NodeScope &node) {
  Emitter &e = node.emitter;
  for (size_t i : {3, 4})
    node.importer().markStatistic(node.operand(i));
  const double momentum = node.number("momentum", 0.9);
  warnOfMomentum(node, momentum);
  std::vector<Tensor> results =
      e.emit("batch_norm", {node.input(0), node.input(3), node.input(4), node.input(1), node.input(2)},
             {e.attribute("momentum", 1 - momentum), e.attribute("eps", node.number("epsilon", 1e-5)),
              e.segments({1, 1, 1, 1, 1, 0})});
  if (results.size() < 3)
    return;
  node.output(results[0]);
  for (size_t i : {1, 2}) {
    node.importer().assign(node.operand(i + 2), results[i]);
    node.output(results[i], i);
  }
}

/// Up to opset 13 a node that has the statistics as outputs is one for training.
bool isForTraining(NodeScope &node) {
  return node.importer().opset() < 14 ? node.wants(1) : node.integer("training_mode", 0) != 0;
}

/// Inference: by the running statistics. For training the batch's own, and updated running ones as results.
void lowerBatchNormalization(NodeScope &node) {
  Tensor x = node.input(0);
  bool layer = x && sizeOf(x.type()) >= 4 && !node.importer().inLoop();
  for (size_t i = 1; i < 5; ++i)
    layer &= node.has(i) && node.operand(i).weight;
  if (layer)
    return lowerBatchNormLayer(node);
  Tensor scale = perChannel(node.input(1), x), bias = perChannel(node.input(2), x);
  Tensor mean = node.input(3), variance = node.input(4);
  const double epsilon = node.number("epsilon", 1e-5), momentum = node.number("momentum", 0.9);
  if (!isForTraining(node)) {
    Tensor factor = scale * unary("rsqrt", perChannel(variance, x) + epsilon);
    return node.output((x - perChannel(mean, x)) * factor + bias);
  }
  if (x.hasBatch())
    return void(node.fail("takes the statistics of an open batch: bind it with --dim NAME=N"));
  Shape dims = dimsFrom(2, x.rank());
  dims.insert(dims.begin(), 0);
  Moments moments = momentsOf(x, dims);
  node.output(normalize(moments.centred, moments.variance, epsilon) * scale + bias);
  node.output(mean * momentum + reshape(moments.mean, mean.shape()) * (1 - momentum), 1);
  node.output(variance * momentum + reshape(moments.variance, mean.shape()) * (1 - momentum), 2);
}

/// x / (bias + alpha / size · Σ x² over `size` neighbouring channels) ^ beta.
void lowerLrn(NodeScope &node) {
  Tensor x = node.input(0);
  const int64_t size = node.integer("size", 1);
  if (x.rank() < 2 || size < 1 || size > 1024)
    return void(node.fail("size " + std::to_string(size) + " of shape " + toString(x.shape())));
  Shape low(x.rank(), 0), high(x.rank(), 0);
  low[1] = (size - 1) / 2, high[1] = size - 1 - low[1];
  Tensor squares = pad(x * x, low, high, 0), sum;
  for (int64_t i = 0; i < size; ++i) {
    Tensor shifted = slice(squares, 1, i, i + x.extent(1));
    sum = i == 0 ? shifted : sum + shifted;
  }
  Tensor base = sum * (node.number("alpha", 1e-4) / size) + node.number("bias", 1);
  node.output(x / binary("pow", base, like(x, node.number("beta", 0.75))));
}

void lowerLpNormalization(NodeScope &node) {
  Tensor x = node.input(0);
  int64_t dim = dimension(x, node.integer("axis", -1)), p = node.integer("p", 2);
  if (dim < 0)
    return;
  if (p != 1 && p != 2)
    return void(node.fail("attribute 'p' = " + std::to_string(p) + ": 1 or 2"));
  Tensor norm =
      p == 1 ? reduce("sum", unary("abs", x), {dim}, true) : unary("sqrt", reduce("sum", x * x, {dim}, true));
  // Where everything is 0 the result is 0.
  Tensor zero = compare("eq", norm, 0);
  node.output(select(zero, like(x, 0), x / select(zero, like(norm, 1), norm)));
}

void lowerMeanVarianceNormalization(NodeScope &node) {
  Tensor x = node.input(0);
  Shape axes = node.integers("axes", {0, 2, 3});
  for (int64_t &axis : axes)
    axis = dimension(x, axis);
  std::sort(axes.begin(), axes.end());
  if (node.failed())
    return;
  Moments moments = momentsOf(x, axes);
  node.output(moments.centred / (unary("sqrt", moments.variance) + 1e-9));
}

/// Exported for inference it is the identity; for training gpuc.dropout, which draws in training alone. What
/// is kept (output 1) is known only where nothing is drawn.
void lowerDropout(NodeScope &node) {
  Tensor x = node.input(0);
  double ratio = node.has(1) ? node.requireNumber(1, "ratio").value_or(0) : 0.5;
  bool training = node.has(2) && node.requireNumber(2, "training_mode").value_or(0) != 0;
  if (node.failed())
    return;
  if (training && ratio != 0) {
    if (node.importer().inLoop())
      return void(node.fail("draws in a loop: export the model for inference"));
    Emitter &e = node.emitter;
    return node.output(
        e.op("dropout", {x}, {e.attribute("p", ratio), e.attribute("id", node.importer().nextRandomId())}));
  }
  node.output(x);
  if (node.wants(1))
    node.output(node.emitter.constant(x.shape(), DataType::i1, 1), 1);
}

} // namespace

void addNormalizations(OpTable &table) {
  table["LayerNormalization"] = {lowerLayerNormalization, {"axis", "epsilon", "stash_type"}};
  table["RMSNormalization"] = {lowerRmsNormalization, {"axis", "epsilon", "stash_type"}};
  table["InstanceNormalization"] = {lowerInstanceNormalization, {"epsilon"}};
  table["GroupNormalization"] = {lowerGroupNormalization, {"epsilon", "num_groups", "stash_type"}};
  table["BatchNormalization"] = {lowerBatchNormalization, {"epsilon", "momentum", "training_mode"}};
  table["LRN"] = {lowerLrn, {"alpha", "beta", "bias", "size"}};
  table["LpNormalization"] = {lowerLpNormalization, {"axis", "p"}};
  table["MeanVarianceNormalization"] = {lowerMeanVarianceNormalization, {"axes"}};
  table["Dropout"] = {lowerDropout, {"seed"}};
}

} // namespace gpuc::onnx
