//===- LossOps.cpp - Losses as ONNX has them --------------------------------===//
//
// Nodes inside a graph. A model's own loss for training is `--loss`, see Loss.cpp.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Exporter.h"
#include "frontend/onnx/Importer.h"
#include "frontend/onnx/ops/OpTable.h"

#include <algorithm>

namespace gpuc::onnx {
namespace {

/// The attribute ignore_index, if there is one.
std::optional<int64_t> ignoredLabel(NodeScope &node) {
  return node.hasAttribute("ignore_index") ? std::optional(node.integer("ignore_index", 0)) : std::nullopt;
}

/// Whether the dialect's own loss computes this: each row of the batch a row of it.
bool isRowwise(NodeScope &node, const Tensor &scores, const Tensor &labels, const std::string &how) {
  const bool isIndex = labels.type() == DataType::i32 || labels.type() == DataType::i64;
  return (how == "mean" || how == "sum") && !node.importer().inLoop() && scores.hasBatch() &&
         labels.hasBatch() && isIndex;
}

/// By gpuc.`name`, which can leave out rows that are padding, over classes that are last.
void lowerToLoss(NodeScope &node, const char *name, const Tensor &scores, const Tensor &labels,
                 const std::string &how) {
  Emitter &e = node.emitter;
  Shape classesLast = dimsFrom(0, scores.rank());
  std::rotate(classesLast.begin() + 1, classesLast.begin() + 2, classesLast.end());
  std::vector<Tensor> operands = {scores.rank() == 2 ? scores : transpose(scores, classesLast), labels};
  if (node.has(2))
    operands.push_back(node.input(2));
  // Without the attribute nothing is ignored: -1 is no class, and no label either.
  llvm::SmallVector<mlir::NamedAttribute> attributes = {
      e.attribute("ignore_index", ignoredLabel(node).value_or(-1)), e.segments({1, 1, node.has(2), 0})};
  std::vector<Tensor> pair = e.emit(name, operands, attributes);
  if (pair.size() == 2)
    node.output(cast(how == "sum" ? pair[0] : pair[0] / pair[1], scores.type()));
}

/// -Σ weight[label] · logProbabilities[label] over classes in dimension 1, then `reduction`; rows whose label
/// is ignore_index count nothing.
void lowerByFormula(NodeScope &node, const Tensor &logProbabilities, const Tensor &labels,
                    const std::string &how) {
  Tensor index = iota(node.emitter, logProbabilities.shape(), DataType::i64, 1);
  Tensor column = unsqueeze(cast(labels, DataType::i64), {1});
  Tensor chosen = compare("eq", index, column);
  Tensor zero = like(logProbabilities, 0);
  Tensor loss = unary("neg", reduce("sum", select(chosen, logProbabilities, zero), {1}, /*keep=*/false));
  Tensor weight = like(loss, 1);
  if (node.has(2)) {
    Tensor each = broadcastTo(beside(node.input(2), 1, logProbabilities.rank()), logProbabilities.shape());
    weight = reduce("sum", select(chosen, each, zero), {1}, /*keep=*/false);
  }
  if (std::optional<int64_t> label = ignoredLabel(node)) {
    Tensor ignored = compare("eq", labels, static_cast<double>(*label));
    weight = select(ignored, like(weight, 0), weight);
  }
  loss = select(compare("eq", weight, 0), like(loss, 0), loss * weight);
  const Shape all = dimsFrom(0, loss.rank());
  Tensor sum = reduce("sum", loss, all, /*keep=*/false);
  if (how == "none")
    node.output(loss);
  else if (how == "sum")
    node.output(sum);
  else
    node.output(sum / reduce("sum", weight, all, /*keep=*/false));
}

/// The label smoothing that PyTorch's exporter has left out, which ONNX's op does not know: the sixth
/// argument of "… aten.cross_entropy_loss.default](args = (%logits, %labels, None, 1, -100, 0.1), kwargs =
/// {})".
std::string droppedSmoothing(const Node &node) {
  llvm::StringRef text = noteOf(node.notes, kExportedNodeNote);
  auto [before, arguments] = text.split("aten.cross_entropy_loss.default](args = (");
  llvm::StringRef named = text.split("label_smoothing: ").second;
  llvm::SmallVector<llvm::StringRef> parts;
  arguments.split(')').first.split(parts, ", ");
  llvm::StringRef number =
      parts.size() == 6 ? parts[5] : named.take_until([](char c) { return c == ',' || c == '}'; });
  double smoothing = 0;
  return arguments.empty() || number.getAsDouble(smoothing) || smoothing == 0 ? "" : number.str();
}

/// Of logits, or of logarithms of probabilities.
void lowerLoss(NodeScope &node, bool ofLogits) {
  if (std::string smoothing = droppedSmoothing(node.node); !smoothing.empty())
    return void(node.fail("the exporter has left out label_smoothing=" + smoothing +
                          ", which this op does not know: export the model without its loss, and pass "
                          "--loss=cross_entropy:label_smoothing=" +
                          smoothing));
  Tensor scores = node.input(0), labels = node.input(1);
  std::string how = node.text("reduction", "mean");
  if (how != "none" && how != "sum" && how != "mean")
    return void(node.fail("attribute 'reduction' = '" + how + "': none, sum or mean"));
  if (scores.rank() < 2)
    return void(node.fail("scores of shape " + toString(scores.shape()) + " have no dimension of classes"));
  Shape rows = scores.shape();
  rows.erase(rows.begin() + 1);
  if (labels.shape() != rows)
    return void(node.fail("labels of shape " + toString(labels.shape()) + " do not go with scores of shape " +
                          toString(scores.shape()) + ": expected " + toString(rows)));
  node.importer().limitRange(node.operand(1), scores.extent(1), ignoredLabel(node));
  Tensor logProbabilities = scores;
  if (ofLogits && (node.wants(1) || !isRowwise(node, scores, labels, how)))
    logProbabilities = along("log_softmax", scores, 1);
  if (!logProbabilities) // of scores that are no floats
    return;
  if (isRowwise(node, scores, labels, how))
    lowerToLoss(node, ofLogits ? "cross_entropy" : "nll", scores, labels, how);
  else
    lowerByFormula(node, logProbabilities, labels, how);
  node.output(logProbabilities, 1);
}

} // namespace

void addLosses(OpTable &table) {
  table["NegativeLogLikelihoodLoss"] = {[](NodeScope &node) { lowerLoss(node, /*ofLogits=*/false); },
                                        {"ignore_index", "reduction"}};
  table["SoftmaxCrossEntropyLoss"] = {[](NodeScope &node) { lowerLoss(node, /*ofLogits=*/true); },
                                      {"ignore_index", "reduction"}};
}

} // namespace gpuc::onnx
