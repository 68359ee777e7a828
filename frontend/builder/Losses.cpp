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
  Graph *graph = logits.graph() ? logits.graph() : labels.graph();
  if (!graph || !graph->usable(name, {&logits, &labels}))
    return false;
  const Shape rows = logits.shape();
  bool indices = labels.dtype() == DataType::i32 || labels.dtype() == DataType::i64;
  if (!isFloat(logits.dtype()) || !indices)
    graph->fail(llvm::formatv("{0} takes floating-point logits and i32 or i64 labels, got {1} and {2}", name,
                              nameOf(logits.dtype()), nameOf(labels.dtype())));
  else if (rows.size() < 2 || labels.shape() != Shape(rows.begin(), rows.end() - 1))
    graph->fail(llvm::formatv("{0} takes logits [batch, classes] and labels [batch], got {1} and {2}", name,
                              toString(rows), toString(labels.shape())));
  else
    return true;
  return false;
}

/// A weight for each class, if it is given.
bool isClassWeight(const char *name, const Tensor &logits, const Tensor &weight) {
  if (!weight.graph())
    return true;
  Graph &graph = *logits.graph();
  if (!graph.usable(name, {&weight}))
    return false;
  if (weight.dtype() == logits.dtype() && weight.shape() == Shape{logits.shape().back()})
    return true;
  graph.fail(llvm::formatv("{0} takes a weight [classes] of the type of the logits, {1} {2}, got {3} {4}",
                           name, toString(logits.shape()), nameOf(logits.dtype()), toString(weight.shape()),
                           nameOf(weight.dtype())));
  return false;
}

/// A prediction and a target of one floating-point type and shape.
bool arePairs(const char *name, const Tensor &prediction, const Tensor &target) {
  Graph *graph = prediction.graph() ? prediction.graph() : target.graph();
  if (!graph || !graph->usable(name, {&prediction, &target}))
    return false;
  if (prediction.dtype() != target.dtype() || !isFloat(prediction.dtype()))
    graph->fail(
        llvm::formatv("{0} takes a prediction and a target of one floating-point type, got {1} and {2}", name,
                      nameOf(prediction.dtype()), nameOf(target.dtype())));
  else if (prediction.shape() != target.shape())
    graph->fail(llvm::formatv("{0} takes a prediction and a target of one shape, got {1} and {2}", name,
                              toString(prediction.shape()), toString(target.shape())));
  else
    return true;
  return false;
}

/// Null if the tensor is left out.
Value optionalValue(const Tensor &tensor) { return tensor.graph() ? Graph::unwrap(tensor) : Value(); }

/// The op; sums of half precision are f32.
template <typename OpType, typename... Args> Loss emitLoss(Graph &graph, DataType type, Args... arguments) {
  Type scalar = graph.scalarType(type == DataType::f64 ? DataType::f64 : DataType::f32);
  auto op = graph.emit<OpType>(scalar, scalar, arguments...);
  return {graph.wrap(op.getSum()), graph.wrap(op.getCount())};
}

/// A loss of pairs of elements; `arguments` follow the mask.
template <typename OpType, typename... Args>
Loss pairLoss(const char *name, const Tensor &prediction, const Tensor &target, Args... arguments) {
  if (!arePairs(name, prediction, target))
    return {};
  return emitLoss<OpType>(*prediction.graph(), prediction.dtype(), Graph::unwrap(prediction),
                          Graph::unwrap(target), /*mask=*/Value(), arguments...);
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
  if (!(options.smoothing >= 0 && options.smoothing < 1)) {
    graph.fail("crossEntropy with smoothing " + detail::numberText(options.smoothing) +
               "; it lies in [0, 1)");
    return {};
  }
  return emitLoss<ir::CrossEntropyOp>(graph, logits.dtype(), Graph::unwrap(logits), Graph::unwrap(labels),
                                      optionalValue(options.weight), /*mask=*/Value(),
                                      graph.builder.getF64FloatAttr(options.smoothing),
                                      graph.builder.getI64IntegerAttr(options.ignoreIndex));
}

Loss nll(const Tensor &logProbabilities, const Tensor &labels, NllOptions options) {
  if (!areLogitsAndLabels("nll", logProbabilities, labels) ||
      !isClassWeight("nll", logProbabilities, options.weight))
    return {};
  Graph &graph = *logProbabilities.graph();
  return emitLoss<ir::NllOp>(graph, logProbabilities.dtype(), Graph::unwrap(logProbabilities),
                             Graph::unwrap(labels), optionalValue(options.weight), /*mask=*/Value(),
                             graph.builder.getI64IntegerAttr(options.ignoreIndex));
}

Loss accuracy(const Tensor &logits, const Tensor &labels, int64_t ignoreIndex) {
  if (!areLogitsAndLabels("accuracy", logits, labels))
    return {};
  Graph &graph = *logits.graph();
  return emitLoss<ir::AccuracyOp>(graph, logits.dtype(), Graph::unwrap(logits), Graph::unwrap(labels),
                                  /*mask=*/Value(), graph.builder.getI64IntegerAttr(ignoreIndex));
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
  if (prediction.graph() && !(delta > 0)) {
    prediction.graph()->fail("huber with delta " + detail::numberText(delta) + "; it is greater than 0");
    return {};
  }
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
  return emitLoss<ir::BceWithLogitsOp>(graph, logits.dtype(), Graph::unwrap(logits), Graph::unwrap(targets),
                                       optionalValue(positiveWeight), /*mask=*/Value());
}

} // namespace gpuc::nn
