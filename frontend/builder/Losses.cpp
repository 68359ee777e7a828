//===- Losses.cpp - What is minimised, and what is counted ------------------===//

#include "frontend/builder/Losses.h"
#include "frontend/builder/Graph.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpuc::nn {

using detail::Graph;

namespace {

/// Logits [batch, …, classes] and one integer label a row; otherwise the model holds an error that begins
/// with `name`.
bool areLogitsAndLabels(const char *name, const Tensor &logits, const Tensor &labels) {
  Graph *graph = Graph::of(name, {&logits, &labels});
  if (!graph)
    return false;
  const Shape rows = logits.shape();
  bool indices = labels.dtype() == DataType::i32 || labels.dtype() == DataType::i64;
  if (!isFloat(logits.dtype()) || !indices)
    return graph->fail(llvm::formatv("{0} takes floating-point logits and i32 or i64 labels, got {1} and {2}",
                                     name, nameOf(logits.dtype()), nameOf(labels.dtype())));
  if (rows.size() < 2 || labels.shape() != Shape(rows.begin(), rows.end() - 1))
    return graph->fail(llvm::formatv("{0} takes logits [batch, classes] and labels [batch], got {1} and {2}",
                                     name, toString(rows), toString(labels.shape())));
  return true;
}

/// A weight for each class, if it is given.
bool isClassWeight(const char *name, const Shape &logits, DataType type, const Tensor &weight, Graph &graph) {
  if (!weight.graph())
    return true;
  if (!graph.usable(name, {&weight}))
    return false;
  if (weight.dtype() == type && weight.shape() == Shape{logits.back()})
    return true;
  return graph.fail(
      llvm::formatv("{0} takes a weight [classes] of the type of the logits, {1} {2}, got {3} {4}", name,
                    toString(logits), nameOf(type), toString(weight.shape()), nameOf(weight.dtype())));
}

bool isClassWeight(const char *name, const Tensor &logits, const Tensor &weight) {
  return isClassWeight(name, logits.shape(), logits.dtype(), weight, *logits.graph());
}

/// Label smoothing in [0, 1).
bool isSmoothing(const char *name, double smoothing, Graph &graph) {
  if (smoothing >= 0 && smoothing < 1)
    return true;
  return graph.fail(std::string(name) + " with smoothing " + detail::numberText(smoothing) +
                    "; it lies in [0, 1)");
}

/// A linear layer's input, its parameters, and one integer label a row.
bool isLayerAndLabels(const char *name, const Tensor &hidden, const Tensor &weight, const Tensor &bias,
                      const Tensor &labels) {
  Graph *graph = hidden.graph() ? hidden.graph() : labels.graph();
  if (!graph || !graph->usable(name, {&hidden, &weight, &labels}) ||
      (bias.graph() && !graph->usable(name, {&bias})))
    return false;
  const Shape rows = hidden.shape(), layer = weight.shape();
  const bool indices = labels.dtype() == DataType::i32 || labels.dtype() == DataType::i64;
  if (!isFloat(hidden.dtype()) || weight.dtype() != hidden.dtype() || !indices)
    return graph->fail(
        llvm::formatv("{0} takes hidden and weight of one floating-point type and i32 or i64 labels, "
                      "got {1}, {2} and {3}",
                      name, nameOf(hidden.dtype()), nameOf(weight.dtype()), nameOf(labels.dtype())));
  if (rows.size() < 2 || layer.size() != 2 || rows.back() != layer[1] ||
      labels.shape() != Shape(rows.begin(), rows.end() - 1))
    return graph->fail(
        llvm::formatv("{0} takes hidden [batch, features], weight [classes, features] and labels "
                      "[batch], got {1}, {2} and {3}",
                      name, toString(rows), toString(layer), toString(labels.shape())));
  if (bias.graph() && (bias.dtype() != hidden.dtype() || bias.shape() != Shape{layer[0]}))
    return graph->fail(
        llvm::formatv("{0} takes a bias [classes] of the type of the weight, {1} {2}, got {3} {4}", name,
                      toString(layer), nameOf(weight.dtype()), toString(bias.shape()), nameOf(bias.dtype())));
  return true;
}

/// A prediction and a target of one floating-point type and shape.
bool arePairs(const char *name, const Tensor &prediction, const Tensor &target) {
  Graph *graph = Graph::of(name, {&prediction, &target});
  if (!graph)
    return false;
  if (prediction.dtype() != target.dtype() || !isFloat(prediction.dtype()))
    return graph->fail(
        llvm::formatv("{0} takes a prediction and a target of one floating-point type, got {1} and {2}", name,
                      nameOf(prediction.dtype()), nameOf(target.dtype())));
  if (prediction.shape() != target.shape())
    return graph->fail(llvm::formatv("{0} takes a prediction and a target of one shape, got {1} and {2}",
                                     name, toString(prediction.shape()), toString(target.shape())));
  return true;
}

template <typename OpType, typename... Args> Loss emitLoss(Graph &graph, Args... arguments) {
  auto op = graph.emit<OpType>(arguments...);
  return {graph.wrap(op.getSum()), graph.wrap(op.getCount())};
}

/// A loss of pairs of elements; `arguments` follow the mask.
template <typename OpType, typename... Args>
Loss pairLoss(const char *name, const Tensor &prediction, const Tensor &target, Args... arguments) {
  if (!arePairs(name, prediction, target))
    return {};
  return emitLoss<OpType>(*prediction.graph(), Graph::unwrap(prediction), Graph::unwrap(target),
                          /*mask=*/Value(), arguments...);
}

} // namespace

//===----------------------------------------------------------------------===//
// By class
//===----------------------------------------------------------------------===//

Loss crossEntropy(const Tensor &logits, const Tensor &labels, CrossEntropyOptions options) {
  if (!areLogitsAndLabels("crossEntropy", logits, labels) ||
      !isClassWeight("crossEntropy", logits, options.weight))
    return {};
  Graph &graph = *logits.graph();
  if (!isSmoothing("crossEntropy", options.smoothing, graph))
    return {};
  return emitLoss<ir::CrossEntropyOp>(
      graph, Graph::unwrap(logits), Graph::unwrap(labels), Graph::unwrap(options.weight), /*mask=*/Value(),
      graph.builder.getF64FloatAttr(options.smoothing), graph.builder.getI64IntegerAttr(options.ignoreIndex));
}

Loss linearCrossEntropy(const Tensor &hidden, const Tensor &weight, const Tensor &bias, const Tensor &labels,
                        CrossEntropyOptions options) {
  static constexpr char kName[] = "linearCrossEntropy";
  if (!isLayerAndLabels(kName, hidden, weight, bias, labels))
    return {};
  Graph &graph = *hidden.graph();
  Shape logits = hidden.shape();
  logits.back() = weight.shape()[0];
  if (!isClassWeight(kName, logits, hidden.dtype(), options.weight, graph) ||
      !isSmoothing(kName, options.smoothing, graph))
    return {};
  return emitLoss<ir::LinearCrossEntropyOp>(
      graph, Graph::unwrap(hidden), Graph::unwrap(weight), Graph::unwrap(bias), Graph::unwrap(labels),
      Graph::unwrap(options.weight), /*mask=*/Value(), graph.builder.getF64FloatAttr(options.smoothing),
      graph.builder.getI64IntegerAttr(options.ignoreIndex),
      /*chunk=*/IntegerAttr());
}

Loss nll(const Tensor &logProbabilities, const Tensor &labels, NllOptions options) {
  if (!areLogitsAndLabels("nll", logProbabilities, labels) ||
      !isClassWeight("nll", logProbabilities, options.weight))
    return {};
  Graph &graph = *logProbabilities.graph();
  return emitLoss<ir::NllOp>(graph, Graph::unwrap(logProbabilities), Graph::unwrap(labels),
                             Graph::unwrap(options.weight), /*mask=*/Value(),
                             graph.builder.getI64IntegerAttr(options.ignoreIndex));
}

Loss accuracy(const Tensor &logits, const Tensor &labels, int64_t ignoreIndex) {
  if (!areLogitsAndLabels("accuracy", logits, labels))
    return {};
  Graph &graph = *logits.graph();
  return emitLoss<ir::AccuracyOp>(graph, Graph::unwrap(logits), Graph::unwrap(labels),
                                  /*mask=*/Value(), graph.builder.getI64IntegerAttr(ignoreIndex));
}

Loss linearAccuracy(const Tensor &hidden, const Tensor &weight, const Tensor &bias, const Tensor &labels,
                    int64_t ignoreIndex) {
  if (!isLayerAndLabels("linearAccuracy", hidden, weight, bias, labels))
    return {};
  Graph &graph = *hidden.graph();
  return emitLoss<ir::LinearAccuracyOp>(graph, Graph::unwrap(hidden), Graph::unwrap(weight),
                                        Graph::unwrap(bias), Graph::unwrap(labels), /*mask=*/Value(),
                                        graph.builder.getI64IntegerAttr(ignoreIndex),
                                        /*chunk=*/IntegerAttr());
}

//===----------------------------------------------------------------------===//
// By element
//===----------------------------------------------------------------------===//

Loss mse(const Tensor &prediction, const Tensor &target) {
  return pairLoss<ir::MseOp>("mse", prediction, target);
}

Loss l1(const Tensor &prediction, const Tensor &target) {
  return pairLoss<ir::L1Op>("l1", prediction, target);
}

Loss huber(const Tensor &prediction, const Tensor &target, double delta) {
  if (prediction.graph() && !(delta > 0))
    return prediction.graph()->fail("huber with delta " + detail::numberText(delta) +
                                    "; it is greater than 0");
  return pairLoss<ir::HuberOp>("huber", prediction, target, APFloat(delta));
}

Loss smoothL1(const Tensor &prediction, const Tensor &target, double beta) {
  Loss loss = huber(prediction, target, beta);
  return loss.sum.valid() ? Loss{loss.sum / beta, loss.count} : loss;
}

Loss bceWithLogits(const Tensor &logits, const Tensor &targets, const Tensor &positiveWeight) {
  if (!arePairs("bceWithLogits", logits, targets))
    return {};
  Graph &graph = *logits.graph();
  if (positiveWeight.graph() && !graph.usable("bceWithLogits", {&positiveWeight}))
    return {};
  // Whether it repeats to the logits is the op's to say.
  return emitLoss<ir::BceWithLogitsOp>(graph, Graph::unwrap(logits), Graph::unwrap(targets),
                                       Graph::unwrap(positiveWeight), /*mask=*/Value());
}

} // namespace gpuc::nn
