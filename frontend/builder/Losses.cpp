//===- Losses.cpp - What is minimised, and what is counted ------------------===//

#include "frontend/builder/Losses.h"
#include "frontend/builder/Graph.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpuc::nn {

using detail::Graph;

namespace {

/// Logits [batch, classes] and one integer label a row; otherwise the model holds an error that begins with
/// `name`.
bool areLogitsAndLabels(const char *name, const Tensor &logits, const Tensor &labels) {
  Graph *graph = logits.graph() ? logits.graph() : labels.graph();
  if (!graph || !graph->usable(name, {&logits, &labels}))
    return false;
  const Shape rows = logits.shape();
  bool indices = labels.dtype() == DataType::i32 || labels.dtype() == DataType::i64;
  if (!isFloat(logits.dtype()) || !indices)
    graph->fail(llvm::formatv("{0} takes floating-point logits and i32 or i64 labels, got {1} and {2}", name,
                              nameOf(logits.dtype()), nameOf(labels.dtype())));
  else if (rows.size() != 2 || labels.shape() != Shape{rows[0]})
    graph->fail(llvm::formatv("{0} takes logits [batch, classes] and labels [batch], got {1} and {2}", name,
                              toString(rows), toString(labels.shape())));
  else
    return true;
  return false;
}

template <typename OpType, typename... Args> Loss emitLoss(Graph &graph, DataType type, Args... arguments) {
  Type scalar = graph.scalarType(type);
  auto op = graph.emit<OpType>(scalar, scalar, arguments...);
  return {graph.wrap(op.getSum()), graph.wrap(op.getCount())};
}

} // namespace

Loss crossEntropy(const Tensor &logits, const Tensor &labels, CrossEntropyOptions options) {
  if (!areLogitsAndLabels("crossEntropy", logits, labels))
    return {};
  Graph &graph = *logits.graph();
  if (!(options.smoothing >= 0 && options.smoothing < 1)) {
    graph.fail("crossEntropy with smoothing " + detail::numberText(options.smoothing) +
               "; it lies in [0, 1)");
    return {};
  }
  return emitLoss<ir::CrossEntropyOp>(graph, logits.dtype(), Graph::unwrap(logits), Graph::unwrap(labels),
                                      /*mask=*/Value(), graph.builder.getF64FloatAttr(options.smoothing),
                                      graph.builder.getI64IntegerAttr(options.ignoreIndex));
}

Loss mse(const Tensor &prediction, const Tensor &target) {
  Graph *graph = prediction.graph() ? prediction.graph() : target.graph();
  if (!graph || !graph->usable("mse", {&prediction, &target}))
    return {};
  if (prediction.dtype() != target.dtype() || !isFloat(prediction.dtype())) {
    graph->fail(
        llvm::formatv("mse takes a prediction and a target of one floating-point type, got {0} and {1}",
                      nameOf(prediction.dtype()), nameOf(target.dtype())));
    return {};
  }
  if (prediction.shape() != target.shape()) {
    graph->fail(llvm::formatv("mse takes a prediction and a target of one shape, got {0} and {1}",
                              toString(prediction.shape()), toString(target.shape())));
    return {};
  }
  return emitLoss<ir::MseOp>(*graph, prediction.dtype(), Graph::unwrap(prediction), Graph::unwrap(target),
                             /*mask=*/Value());
}

Loss accuracy(const Tensor &logits, const Tensor &labels, int64_t ignoreIndex) {
  if (!areLogitsAndLabels("accuracy", logits, labels))
    return {};
  Graph &graph = *logits.graph();
  return emitLoss<ir::AccuracyOp>(graph, logits.dtype(), Graph::unwrap(logits), Graph::unwrap(labels),
                                  /*mask=*/Value(), graph.builder.getI64IntegerAttr(ignoreIndex));
}

} // namespace gpuc::nn
