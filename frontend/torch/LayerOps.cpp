//===- LayerOps.cpp - Convolution, pooling, norms, embedding -------------------===//

#include "frontend/torch/OpTable.h"

#include <algorithm>

namespace gpuc::torch {
namespace {

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// As images of height 1 where there is one spatial dimension.
Tensor asImage(const Tensor &x, size_t dims) {
  if (!x || dims == 2)
    return x;
  return unsqueeze(x, {x.rank() - 1});
}

/// A list of one number for each spatial dimension as [height, width].
Shape ofImage(Shape list, int64_t height) {
  if (list.size() == 1)
    list.insert(list.begin(), height);
  return list;
}

Shape paddingOf(const Shape &pads) { return {pads[0], pads[0], pads[1], pads[1]}; }

/// A batch of one where images stand without a batch.
Tensor withBatch(const Tensor &x, size_t dims) {
  return x && x.rank() == static_cast<int64_t>(dims) + 1 ? unsqueeze(x, {0}) : x;
}

/// The convolution of x with the padding `pads`, and the bias.
void outputConvolution(OpScope &op, const Tensor &input, const Shape &pads, size_t dims) {
  Tensor x = asImage(withBatch(input, dims), dims), filter = asImage(op.tensor("weight"), dims);
  const Shape ones(dims, 1);
  Emitter &e = op.emitter;
  Tensor result = e.op("conv2d", {x, filter},
                       {e.attribute("strides", ofImage(op.integers("stride", ones, dims), 1)),
                        e.attribute("padding", paddingOf(ofImage(pads, 0))),
                        e.attribute("dilation", ofImage(op.integers("dilation", ones, dims), 1)),
                        e.attribute("groups", op.integer("groups", 1))});
  if (op.has("bias"))
    result = result + onnx::beside(op.tensor("bias"), 1, 4);
  op.output(reshape(result, op.shape()));
}

void lowerConvolution(OpScope &op, size_t dims) {
  outputConvolution(op, op.tensor("input"), op.integers("padding", Shape(dims, 0), dims), dims);
}

/// "same" or "valid" in the place of numbers: with even reaches PyTorch pads more behind.
void lowerNamedPadding(OpScope &op, size_t dims) {
  const std::string padding = op.text("padding", "valid");
  Tensor x = op.tensor("input"), filter = op.tensor("weight");
  const Shape dilation = op.integers("dilation", Shape(dims, 1), dims);
  Shape low(x.rank(), 0), high(x.rank(), 0);
  for (size_t d = 0; d < dims && padding == "same"; ++d) {
    const int64_t at = static_cast<int64_t>(d) - static_cast<int64_t>(dims);
    const int64_t total = (filter.extent(filter.rank() + at) - 1) * dilation[d];
    low[x.rank() + at] = total / 2, high[x.rank() + at] = total - total / 2;
  }
  outputConvolution(op, pad(x, low, high, 0), Shape(dims, 0), dims);
}

/// conv2d's gradient by its input, of as much as windows reach: what `output_padding` has beyond is the bias
/// alone.
void lowerTransposedConvolution(OpScope &op, size_t dims) {
  Tensor x = asImage(withBatch(op.tensor("input"), dims), dims), filter = asImage(op.tensor("weight"), dims);
  if (!x || !filter)
    return;
  const Shape ones(dims, 1), zeros(dims, 0);
  const Shape low = ofImage(op.integers("padding", zeros, dims), 0);
  Shape extra = ofImage(op.integers("output_padding", zeros, dims), 0), beyond(4, 0);
  for (size_t d = 0; d < 2; ++d) {
    beyond[2 + d] = std::max<int64_t>(extra[d] - low[d], 0);
    extra[d] -= beyond[2 + d];
  }
  Shape shape = op.shape();
  shape = {x.extent(0), filter.extent(1) * op.integer("groups", 1),
           dims == 2 ? shape[shape.size() - 2] - beyond[2] : 1, shape.back() - beyond[3]};
  Emitter &e = op.emitter;
  Tensor result = e.op("conv2d_input_gradient", {x, filter},
                       {e.attribute("strides", ofImage(op.integers("stride", ones, dims), 1)),
                        e.attribute("padding", Shape{low[0], low[0] - extra[0], low[1], low[1] - extra[1]}),
                        e.attribute("dilation", ofImage(op.integers("dilation", ones, dims), 1)),
                        e.attribute("groups", op.integer("groups", 1))},
                       e.tensorType(shape, x.type()));
  result = pad(result, Shape(4, 0), beyond, 0);
  if (op.has("bias"))
    result = result + onnx::beside(op.tensor("bias"), 1, 4);
  op.output(reshape(result, op.shape()));
}

/// Where windows of pooling lie. With ceil_mode there is more padding behind, as much as the last one needs.
struct Windows {
  Shape kernel, strides, padding, dilation;
  bool isPlain = true; ///< No padding but what was asked for.
};

std::optional<Windows> placeWindows(OpScope &op, const Tensor &x) {
  Windows w;
  w.kernel = op.integers("kernel_size", {}, 2);
  w.strides = op.integers("stride", w.kernel, 2);
  w.dilation = op.integers("dilation", {1, 1}, 2);
  const Shape pads = op.integers("padding", {0, 0}, 2);
  if (!x || w.kernel.size() != 2)
    return std::nullopt;
  for (size_t d = 0; d < 2; ++d) {
    const int64_t count = op.shape()[op.shape().size() - 2 + d],
                  extent = x.extent(2 + static_cast<int64_t>(d));
    const int64_t reach = (count - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilation[d] + 1;
    const int64_t high = std::max<int64_t>(reach - extent - pads[d], 0);
    w.isPlain &= high <= pads[d];
    w.padding.insert(w.padding.end(), {pads[d], high});
  }
  return w;
}

void lowerMaxPool(OpScope &op) {
  Tensor x = withBatch(op.tensor("self"), 2);
  std::optional<Windows> w = placeWindows(op, x);
  if (!w)
    return;
  Emitter &e = op.emitter;
  std::vector<Tensor> results =
      e.emit("max_pool2d", {x},
             {e.attribute("window", w->kernel), e.attribute("strides", w->strides),
              e.attribute("padding", w->padding), e.attribute("dilation", w->dilation)});
  if (results.size() < 2)
    return;
  op.output(reshape(results[0], op.shape()));
  if (op.wants(1))
    op.output(reshape(results[1], op.shape()), 1);
}

void lowerAveragePool(OpScope &op) {
  Tensor x = withBatch(op.tensor("self"), 2);
  std::optional<Windows> w = placeWindows(op, x);
  if (!w)
    return;
  const bool countsPadding = op.flag("count_include_pad", true);
  if (countsPadding && !w->isPlain)
    return void(op.fail("ceil_mode with count_include_pad is not supported: say count_include_pad=False"));
  Emitter &e = op.emitter;
  std::vector<mlir::NamedAttribute> attributes = {e.attribute("window", w->kernel),
                                                  e.attribute("strides", w->strides),
                                                  e.attribute("padding", w->padding)};
  if (!countsPadding)
    attributes.push_back(e.flag("exclude_padding"));
  op.output(reshape(e.op("avg_pool2d", {x}, attributes), op.shape()));
}

/// The matrix [from, to] by which each of `to` windows takes the mean of its elements: window i of PyTorch's
/// adaptive pooling goes from ⌊i · from / to⌋ to ⌈(i + 1) · from / to⌉.
std::vector<double> meansOf(int64_t from, int64_t to) {
  std::vector<double> matrix(from * to, 0);
  for (int64_t i = 0; i < to; ++i) {
    const int64_t begin = i * from / to, end = ((i + 1) * from + to - 1) / to;
    for (int64_t k = begin; k < end; ++k)
      matrix[k * to + i] = 1.0 / static_cast<double>(end - begin);
  }
  return matrix;
}

/// Windows of one length lie side by side; others overlap.
Tensor meansAlong(const Tensor &x, int64_t dim, int64_t to) {
  const int64_t from = x.extent(dim);
  if (to == 0 || from % to != 0)
    return onnx::multiplyAlong(x, dim, to, meansOf(from, to));
  Shape windows = x.shape();
  windows[dim] = to;
  windows.insert(windows.begin() + dim + 1, from / to);
  return reduce("mean", reshape(x, windows), {dim + 1}, /*keep=*/false);
}

void lowerAdaptiveAverage(OpScope &op, int64_t dims) {
  Tensor x = op.tensor("self");
  if (!x)
    return;
  const Shape shape = op.shape();
  const bool isGlobal = std::all_of(shape.end() - dims, shape.end(), [](int64_t n) { return n == 1; });
  if (isGlobal)
    return op.output(reduce("mean", x, onnx::dimsFrom(x.rank() - dims, x.rank()), /*keep=*/true));
  for (int64_t dim = x.rank() - dims; x && dim < static_cast<int64_t>(shape.size()); ++dim)
    if (x.extent(dim) != shape[dim])
      x = meansAlong(x, dim, shape[dim]);
  if (x)
    op.output(x);
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// x to mean 0 and variance 1 over `dims`.
Tensor normalized(const Tensor &x, const Shape &dims, double eps) {
  Tensor centred = x - reduce("mean", x, dims, /*keep=*/true);
  Tensor variance = reduce("mean", centred * centred, dims, /*keep=*/true);
  return centred * unary("rsqrt", variance + eps);
}

/// weight and bias of each channel, those that there are.
Tensor affine(OpScope &op, Tensor result) {
  if (op.has("weight"))
    result = result * onnx::beside(op.tensor("weight"), 1, result.rank());
  return op.has("bias") ? result + onnx::beside(op.tensor("bias"), 1, result.rank()) : result;
}

/// Of a layer whose statistics do not move: one in eval mode. They have no gradient, wherever they come from.
void lowerFrozenBatchNorm(OpScope &op) {
  Tensor x = op.tensor("input"), mean = unary("stop_gradient", op.tensor("running_mean")),
         variance = unary("stop_gradient", op.tensor("running_var"));
  if (!x)
    return;
  Tensor root = unary("rsqrt", variance + op.number("eps", 1e-5));
  op.output(affine(op, (x - onnx::beside(mean, 1, x.rank())) * onnx::beside(root, 1, x.rank())));
}

/// The functional form: what the running statistics become are results, without gradients.
void lowerBatchNorm(OpScope &op) {
  if (!op.flag("training", false))
    return lowerFrozenBatchNorm(op);
  if (!op.has("running_mean")) {
    Tensor x = op.tensor("input");
    Shape dims = onnx::dimsFrom(2, x.rank());
    dims.insert(dims.begin(), 0);
    return op.output(affine(op, normalized(x, dims, op.number("eps", 1e-5))));
  }
  if (op.wants(1) || op.wants(2))
    return void(
        op.fail("the batch's own statistics are used, which is not supported: F.batch_norm is there"));
  std::vector<Tensor> operands = {op.tensor("input"), op.tensor("running_mean"), op.tensor("running_var")};
  const bool hasWeight = op.has("weight"), hasBias = op.has("bias");
  if (hasWeight)
    operands.push_back(op.tensor("weight"));
  if (hasBias)
    operands.push_back(op.tensor("bias"));
  Emitter &e = op.emitter;
  std::vector<Tensor> results =
      e.emit("batch_norm", operands,
             {e.attribute("momentum", op.number("momentum", 0.1)), e.attribute("eps", op.number("eps", 1e-5)),
              e.segments({1, 1, 1, hasWeight, hasBias, 0})});
  if (results.size() < 3)
    return;
  op.output(results[0]);
  op.output(unary("stop_gradient", results[1]), 3);
  op.output(unary("stop_gradient", results[2]), 4);
}

/// Over the last dimensions, as many as normalized_shape has.
int64_t firstNormalized(OpScope &op, const Tensor &x) {
  return x.rank() - static_cast<int64_t>(op.integers("normalized_shape", {}).size());
}

void lowerLayerNorm(OpScope &op) {
  Tensor x = op.tensor("input");
  if (!x)
    return;
  Emitter &e = op.emitter;
  std::vector<Tensor> operands = {x};
  const bool hasWeight = op.has("weight"), hasBias = op.has("bias");
  if (hasWeight)
    operands.push_back(op.tensor("weight"));
  if (hasBias)
    operands.push_back(op.tensor("bias"));
  op.output(e.op("layer_norm", operands,
                 {e.attribute("dim", firstNormalized(op, x)), e.attribute("eps", op.number("eps", 1e-5)),
                  e.segments({1, hasWeight, hasBias})}));
}

/// eps is, if it is not given, the machine epsilon of the type that PyTorch computes in.
void lowerRmsNorm(OpScope &op) {
  Tensor x = op.tensor("input");
  if (!x)
    return;
  const double epsilon = x.type() == DataType::f64 ? 0x1p-52 : 0x1p-23;
  Emitter &e = op.emitter;
  std::vector<Tensor> operands = {x};
  if (op.has("weight"))
    operands.push_back(op.tensor("weight"));
  op.output(
      e.op("rms_norm", operands,
           {e.attribute("dim", firstNormalized(op, x)), e.attribute("eps", op.number("eps", epsilon))}));
}

void lowerGroupNorm(OpScope &op) {
  Tensor x = op.tensor("input");
  const int64_t groups = op.integer("num_groups", 1);
  if (!x)
    return;
  const Shape shape = x.shape();
  Shape grouped = {shape[0], groups, shape[1] / groups};
  grouped.insert(grouped.end(), shape.begin() + 2, shape.end());
  Tensor parts = reshape(x, grouped);
  Tensor result = normalized(parts, onnx::dimsFrom(2, parts.rank()), op.number("eps", 1e-5));
  op.output(affine(op, reshape(result, shape)));
}

void lowerInstanceNorm(OpScope &op) {
  Tensor x = op.tensor("input");
  if (op.has("running_mean"))
    return void(op.fail("keeps running statistics, which is not supported: track_running_stats=False"));
  if (x)
    op.output(affine(op, normalized(x, onnx::dimsFrom(2, x.rank()), op.number("eps", 1e-5))));
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// How many of the indices are the same, for each.
Tensor howOften(const Tensor &indices, DataType type) {
  const int64_t count = onnx::countOf(indices.shape(), 0, indices.rank());
  Tensor rows = reshape(indices, {count, 1}), columns = reshape(indices, {1, count});
  Tensor isSame = compare("eq", broadcastTo(rows, {count, count}), broadcastTo(columns, {count, count}));
  return reshape(reduce("sum", cast(isSame, type), {1}, /*keep=*/false), indices.shape());
}

/// The rows that indices name. The row `padding_idx` gets no gradient. A sparse gradient has a dense one's
/// numbers.
void lowerEmbedding(OpScope &op) {
  Tensor table = op.tensor("weight"), indices = op.tensor("indices");
  if (!table || !indices)
    return;
  limitRange(indices, table.extent(0));
  if (const int64_t padding = op.integer("padding_idx", -1); padding >= 0) {
    Tensor row = onnx::iota(op.emitter, {table.extent(0), 1}, DataType::i64, 0);
    table = select(compare("eq", row, static_cast<double>(padding)), unary("stop_gradient", table), table);
  }
  Tensor rows = op.emitter.op("gather", {table, indices}, op.emitter.attribute("dim", int64_t{0}));
  if (op.flag("scale_grad_by_freq", false)) {
    Tensor kept = unary("stop_gradient", rows);
    rows = kept + (rows - kept) / unsqueeze(howOften(indices, rows.type()), {indices.rank()});
  }
  op.output(rows);
}

} // namespace

void addLayers(OpTable &table) {
  const std::vector<std::string> convolution = {"input",   "weight",   "bias",  "stride",
                                                "padding", "dilation", "groups"};
  table["conv1d.default"] = {[](OpScope &op) { lowerConvolution(op, 1); }, convolution};
  table["conv2d.default"] = {[](OpScope &op) { lowerConvolution(op, 2); }, convolution};
  table["conv1d.padding"] = {[](OpScope &op) { lowerNamedPadding(op, 1); }, convolution};
  table["conv2d.padding"] = {[](OpScope &op) { lowerNamedPadding(op, 2); }, convolution};
  std::vector<std::string> transposed = convolution;
  transposed.push_back("output_padding");
  table["conv_transpose1d.default"] = {[](OpScope &op) { lowerTransposedConvolution(op, 1); }, transposed};
  table["conv_transpose2d.input"] = {[](OpScope &op) { lowerTransposedConvolution(op, 2); }, transposed};
  const std::vector<std::string> maxPool = {"self",    "kernel_size", "stride",
                                            "padding", "dilation",    "ceil_mode"};
  table["max_pool2d.default"] = {lowerMaxPool, maxPool};
  table["max_pool2d_with_indices.default"] = {lowerMaxPool, maxPool};
  table["avg_pool2d.default"] = {
      lowerAveragePool, {"self", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"}};
  table["adaptive_avg_pool1d.default"] = {[](OpScope &op) { lowerAdaptiveAverage(op, 1); },
                                          {"self", "output_size"}};
  for (const char *name : {"adaptive_avg_pool2d.default", "_adaptive_avg_pool2d.default"})
    table[name] = {[](OpScope &op) { lowerAdaptiveAverage(op, 2); }, {"self", "output_size"}};
  const std::vector<std::string> statistics = {"input",    "weight",   "bias", "running_mean", "running_var",
                                               "training", "momentum", "eps",  "cudnn_enabled"};
  for (const char *name : {"_native_batch_norm_legit_functional.default", "_native_batch_norm_legit.no_stats",
                           "_native_batch_norm_legit_no_training.default", "batch_norm.default"})
    table[name] = {lowerBatchNorm, statistics};
  table["layer_norm.default"] = {lowerLayerNorm,
                                 {"input", "normalized_shape", "weight", "bias", "eps", "cudnn_enable"}};
  table["rms_norm.default"] = {lowerRmsNorm, {"input", "normalized_shape", "weight", "eps"}};
  table["group_norm.default"] = {lowerGroupNorm,
                                 {"input", "num_groups", "weight", "bias", "eps", "cudnn_enabled"}};
  table["instance_norm.default"] = {lowerInstanceNorm,
                                    {"input", "weight", "bias", "running_mean", "running_var",
                                     "use_input_stats", "momentum", "eps", "cudnn_enabled"}};
  table["embedding.default"] = {lowerEmbedding,
                                {"weight", "indices", "padding_idx", "scale_grad_by_freq", "sparse"}};
}

} // namespace gpuc::torch
