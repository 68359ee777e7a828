//===- Images.cpp - Convolution and pooling for models ----------------------===//

#include "frontend/builder/Images.h"

#include "frontend/builder/Graph.h"

#include "dialects/gpuc/Convolutions.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpuc::nn {

using detail::Graph;

namespace {

/// What `infer` gives, or the model's error: the dialect's own message.
FailureOr<RankedTensorType> checked(Graph *graph, function_ref<FailureOr<RankedTensorType>(Location)> infer) {
  std::string message;
  ScopedDiagnosticHandler handler(&graph->context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  FailureOr<RankedTensorType> type = infer(graph->location());
  StringRef text = message; // "'conv2d' op input …"
  if (failed(type) && text.consume_front("'"))
    graph->fail(llvm::formatv("{0}:{1}", text.take_until([](char c) { return c == '\''; }),
                              text.substr(text.find("' op") + 4)));
  return type;
}

RankedTensorType typeOf(const Tensor &tensor) {
  return cast<RankedTensorType>(Graph::unwrap(tensor).getType());
}

FailureOr<RankedTensorType> inferredConv2d(Graph *graph, const char *name, RankedTensorType images,
                                           const Tensor &weight, const ConvOptions &options) {
  return checked(graph, [&](Location location) {
    return ir::inferConv2d(location, name, images, typeOf(weight),
                           {{}, options.stride, options.padding, options.dilation}, options.groups);
  });
}

FailureOr<RankedTensorType> inferredPooling(Graph *graph, const char *name, const Tensor &x, Pair window,
                                            const PoolOptions &options) {
  return checked(graph, [&](Location location) {
    return ir::inferPooling(location, name, typeOf(x),
                            {window, options.stride, options.padding, options.dilation});
  });
}

/// The graph of operands of floating point, or null; rank and extents are for the dialect to judge.
Graph *graphOf(const char *name, ArrayRef<const Tensor *> operands) {
  Graph *graph = Graph::of(name, operands);
  auto isFloating = [&](const Tensor *operand) { return graph->isFloating(name, *operand); };
  return graph && llvm::all_of(operands, isFloating) ? graph : nullptr;
}

} // namespace

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

Tensor conv2d(const Tensor &x, const Tensor &weight, const ConvOptions &options) {
  Graph *graph = graphOf("conv2d", {&x, &weight});
  if (!graph)
    return {};
  auto type = inferredConv2d(graph, "conv2d", typeOf(x), weight, options);
  if (failed(type))
    return {};
  return graph->emitTensor<ir::Conv2dOp>(*type, Graph::unwrap(x), Graph::unwrap(weight), options.stride,
                                         options.padding, options.dilation, options.groups);
}

Tensor convTranspose2d(const Tensor &x, const Tensor &weight, const ConvOptions &options,
                       Pair outputPadding) {
  Graph *graph = graphOf("convTranspose2d", {&x, &weight});
  if (!graph)
    return {};
  Shape images = x.shape(), filter = weight.shape();
  if (images.size() != 4 || filter.size() != 4)
    return graph->fail(llvm::formatv("convTranspose2d of {0} and {1}: both have four dimensions",
                                     toString(images), toString(filter)));
  Shape shape = {images[0], filter[1] * options.groups};
  for (int side : {0, 1})
    shape.push_back((images[2 + side] - 1) * options.stride[side] - options.padding[2 * side] -
                    options.padding[2 * side + 1] + options.dilation[side] * (filter[2 + side] - 1) + 1 +
                    outputPadding[side]);
  if (shape[2] < 1 || shape[3] < 1)
    return graph->fail(llvm::formatv("convTranspose2d of {0} and {1}: the padding leaves nothing",
                                     toString(images), toString(filter)));
  RankedTensorType type = graph->tensorType(shape, x.dtype());
  auto forward = inferredConv2d(graph, "convTranspose2d", type, weight, options);
  if (failed(forward))
    return {};
  if (*forward != typeOf(x))
    return graph->fail(
        llvm::formatv("convTranspose2d of {0} and {1}: the weight has as many inputs as the images "
                      "have channels, and outputPadding is less than the stride",
                      toString(images), toString(filter)));
  return graph->emitTensor<ir::Conv2dInputGradientOp>(type, Graph::unwrap(x), Graph::unwrap(weight),
                                                      options.stride, options.padding, options.dilation,
                                                      options.groups);
}

Tensor conv1d(const Tensor &x, const Tensor &weight, int64_t stride, Pair padding, int64_t dilation,
              int64_t groups) {
  Graph *graph = graphOf("conv1d", {&x, &weight});
  if (!graph)
    return {};
  Shape rows = x.shape(), filter = weight.shape();
  if (rows.size() != 3 || filter.size() != 3)
    return graph->fail(
        llvm::formatv("conv1d of {0} and {1}: both have three dimensions", toString(rows), toString(filter)));
  Tensor y = conv2d(reshape(x, {rows[0], rows[1], 1, rows[2]}),
                    reshape(weight, {filter[0], filter[1], 1, filter[2]}),
                    {{1, stride}, {0, 0, padding[0], padding[1]}, {1, dilation}, groups});
  if (!y.valid())
    return {};
  Shape shape = y.shape();
  return reshape(y, {shape[0], shape[1], shape[3]});
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

MaxPooled maxPool2d(const Tensor &x, Pair window, const PoolOptions &options) {
  Graph *graph = graphOf("maxPool2d", {&x});
  if (!graph)
    return {};
  auto type = inferredPooling(graph, "maxPool2d", x, window, options);
  if (failed(type))
    return {};
  auto pool = graph->emit<ir::MaxPool2dOp>(*type, type->clone(graph->builder.getI64Type()), Graph::unwrap(x),
                                           window, options.stride, options.padding, options.dilation);
  return {graph->wrap(pool.getValues()), graph->wrap(pool.getIndices())};
}

Tensor avgPool2d(const Tensor &x, Pair window, const PoolOptions &options, bool countIncludePad) {
  Graph *graph = graphOf("avgPool2d", {&x});
  if (!graph)
    return {};
  if (options.dilation != Pair{1, 1})
    return graph->fail("avgPool2d has no dilation");
  auto type = inferredPooling(graph, "avgPool2d", x, window, options);
  if (failed(type))
    return {};
  return graph->emitTensor<ir::AvgPool2dOp>(*type, Graph::unwrap(x), window, options.stride, options.padding,
                                            /*exclude_padding=*/!countIncludePad);
}

Padding ceilPadding(const Tensor &x, Pair window, const PoolOptions &options) {
  Padding padding = options.padding;
  Shape shape = x.shape();
  if (shape.size() != 4)
    return padding;
  for (int side : {0, 1}) {
    int64_t span = (window[side] - 1) * options.dilation[side] + 1, stride = options.stride[side];
    int64_t low = padding[2 * side], extent = shape[2 + side];
    int64_t left = extent + low + padding[2 * side + 1] - span;
    if (left < 0 || stride < 1)
      continue;
    int64_t more = (stride - left % stride) % stride;
    // No window begins beyond the image: PyTorch leaves such a one out again.
    if (left + more < extent + low)
      padding[2 * side + 1] += more;
  }
  return padding;
}

} // namespace gpuc::nn
