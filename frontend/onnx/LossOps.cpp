//===- LossOps.cpp - Losses as ONNX has them --------------------------------===//
//
// Nodes inside a graph. A model's own loss for training is `--loss`, see Loss.cpp.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/OpTable.h"

#include <numeric>

namespace gpuc::onnx {
namespace {

/// -Σ weight[label] · logProbabilities[label] over classes in dimension 1, then `reduction`; rows whose label
/// is ignore_index count nothing.
void lowerLoss(NodeScope &node, const Tensor &logProbabilities) {
  Tensor labels = node.input(1);
  if (logProbabilities.rank() < 2)
    return void(
        node.fail("scores of shape " + toString(logProbabilities.shape()) + " have no dimension of classes"));
  Tensor index = iota(node.emitter, logProbabilities.shape(), DataType::i64, 1);
  Tensor column = unsqueeze(cast(labels, DataType::i64), {1});
  Tensor chosen = compare("eq", index, column);
  Tensor zero = like(logProbabilities, 0);
  Tensor loss = unary("neg", reduce("sum", select(chosen, logProbabilities, zero), {1}, /*keep=*/false));
  Tensor weight = like(loss, 1);
  if (node.has(2)) {
    Shape shape(logProbabilities.rank() - 1, 1);
    shape[0] = logProbabilities.extent(1);
    Tensor each = broadcastTo(reshape(node.input(2), shape), logProbabilities.shape());
    weight = reduce("sum", select(chosen, each, zero), {1}, /*keep=*/false);
  }
  if (node.hasAttribute("ignore_index")) {
    Tensor ignored = compare("eq", labels, static_cast<double>(node.integer("ignore_index", 0)));
    weight = select(ignored, like(weight, 0), weight);
  }
  loss = select(compare("eq", weight, 0), like(loss, 0), loss * weight);
  std::string how = node.text("reduction", "mean");
  Shape all(loss.rank());
  std::iota(all.begin(), all.end(), 0);
  Tensor sum = reduce("sum", loss, all, /*keep=*/false);
  if (how == "none")
    node.output(loss);
  else if (how == "sum")
    node.output(sum);
  else if (how == "mean")
    node.output(sum / reduce("sum", weight, all, /*keep=*/false));
  else
    node.fail("attribute 'reduction' = '" + how + "': none, sum or mean");
}

} // namespace

void addLosses(OpTable &table) {
  table["NegativeLogLikelihoodLoss"] = {[](NodeScope &node) { lowerLoss(node, node.input(0)); },
                                        {"ignore_index", "reduction"}};
  table["SoftmaxCrossEntropyLoss"] = {[](NodeScope &node) {
                                        Tensor logProbabilities = along("log_softmax", node.input(0), 1);
                                        lowerLoss(node, logProbabilities);
                                        node.output(logProbabilities, 1);
                                      },
                                      {"ignore_index", "reduction"}};
}

} // namespace gpuc::onnx
