//===- LossOps.cpp - Losses -----------------------------------------------------===//
//
// The dialect's losses give a sum and a count, of which a mean is the quotient. Where such a quotient is all
// of the step's loss, the recipe takes the two apart again.
//
//===----------------------------------------------------------------------===//

#include "frontend/torch/OpTable.h"

namespace gpuc::torch {
namespace {

/// PyTorch's numbers of reductions.
enum Reduction { kNone, kMean, kSum };

Reduction reductionOf(OpScope &op) { return static_cast<Reduction>(op.integer("reduction", kMean)); }

/// The mean or the sum of (sum, count).
void outputReduced(OpScope &op, const std::vector<Tensor> &pair, double scale = 1) {
  if (pair.size() != 2)
    return;
  Tensor loss = reductionOf(op) == kSum ? pair[0] : pair[0] / pair[1];
  op.output(cast(scale == 1 ? loss : loss * scale, op.type()));
}

/// Of a tensor of single losses.
void outputReduced(OpScope &op, const Tensor &losses) {
  const Shape all = onnx::dimsFrom(0, losses.rank());
  op.output(reductionOf(op) == kNone ? losses
                                     : reduce(reductionOf(op) == kSum ? "sum" : "mean", losses, all, false));
}

//===----------------------------------------------------------------------===//
// By class
//===----------------------------------------------------------------------===//

/// Classes, PyTorch's dimension 1, last.
Tensor classesLast(const Tensor &scores) {
  if (!scores || scores.rank() <= 2)
    return scores;
  Shape permutation = onnx::dimsFrom(0, scores.rank());
  permutation.erase(permutation.begin() + 1);
  permutation.push_back(1);
  return transpose(scores, permutation);
}

/// -Σ target · log softmax over classes, where the target is a distribution.
void lowerSoftCrossEntropy(OpScope &op, const Tensor &scores, Tensor target) {
  if (op.has("weight"))
    return void(op.fail("weights with a target of probabilities are not supported"));
  Tensor last = classesLast(scores);
  target = classesLast(target);
  if (const double smoothing = op.number("label_smoothing", 0); smoothing != 0)
    target = target * (1 - smoothing) + smoothing / static_cast<double>(last.extent(last.rank() - 1));
  Tensor products = target * along("log_softmax", last, -1);
  outputReduced(op, unary("neg", reduce("sum", products, {last.rank() - 1}, /*keep=*/false)));
}

void lowerClassLoss(OpScope &op, const char *name) {
  Tensor scores = op.tensor("self"), labels = op.tensor("target");
  if (!scores || !labels)
    return;
  if (labels.isFloat())
    return lowerSoftCrossEntropy(op, scores, labels);
  if (scores.rank() < 2)
    return void(op.fail("scores of shape " + toString(scores.shape()) + " have no batch: put one in front"));
  if (reductionOf(op) == kNone)
    return void(op.fail("reduction='none' is not supported: 'mean' or 'sum'"));
  const int64_t ignored = op.integer("ignore_index", -100);
  limitRange(labels, scores.extent(1), ignored);
  Emitter &e = op.emitter;
  std::vector<Tensor> operands = {classesLast(scores), labels};
  const bool weighted = op.has("weight");
  if (weighted)
    operands.push_back(op.tensor("weight"));
  std::vector<mlir::NamedAttribute> attributes = {e.attribute("ignore_index", ignored),
                                                  e.segments({1, 1, weighted, 0})};
  if (op.has("label_smoothing"))
    attributes.push_back(e.attribute("smoothing", op.number("label_smoothing", 0)));
  outputReduced(op, e.emit(name, operands, attributes));
}

//===----------------------------------------------------------------------===//
// By element
//===----------------------------------------------------------------------===//

/// Prediction and target, broadcast as PyTorch does.
std::optional<std::pair<Tensor, Tensor>> readPair(OpScope &op) {
  Tensor prediction = op.operand("self", op.type()), target = op.operand("target", op.type());
  if (!prediction || !target)
    return std::nullopt;
  std::optional<Shape> shape = onnx::broadcastShapes(op.emitter, prediction.shape(), target.shape());
  if (!shape)
    return std::nullopt;
  return std::pair(broadcastTo(prediction, *shape), broadcastTo(target, *shape));
}

void lowerElementLoss(OpScope &op, const char *name) {
  auto pair = readPair(op);
  if (!pair)
    return;
  if (reductionOf(op) == kNone) {
    Tensor difference = pair->first - pair->second;
    if (std::string(name) == "huber")
      return void(op.fail("reduction='none' is not supported: 'mean' or 'sum'"));
    return op.output(std::string(name) == "mse" ? difference * difference : unary("abs", difference));
  }
  Emitter &e = op.emitter;
  std::vector<mlir::NamedAttribute> attributes;
  double scale = 1;
  if (std::string(name) == "huber") {
    // Over beta huber is smooth_l1.
    const double delta = op.number(op.has("beta") ? "beta" : "delta", 1);
    if (delta <= 0)
      return void(op.fail("beta is not above 0: use l1_loss"));
    scale = op.node.op.starts_with("smooth") ? 1 / delta : 1;
    attributes.push_back(e.attribute("delta", delta));
  }
  outputReduced(op, e.emit(name, {pair->first, pair->second}, attributes), scale);
}

void lowerBceWithLogits(OpScope &op) {
  auto pair = readPair(op);
  if (!pair)
    return;
  if (op.has("weight") || reductionOf(op) == kNone)
    return void(op.fail("weight and reduction='none' are not supported: pos_weight, 'mean' or 'sum'"));
  std::vector<Tensor> operands = {pair->first, pair->second};
  const bool weighted = op.has("pos_weight");
  if (weighted)
    operands.push_back(op.tensor("pos_weight"));
  outputReduced(op, op.emitter.emit("bce_with_logits", operands, {op.emitter.segments({1, 1, weighted, 0})}));
}

/// Logarithms are bounded by -100, as in PyTorch.
void lowerBce(OpScope &op) {
  auto pair = readPair(op);
  if (!pair)
    return;
  if (op.has("weight"))
    return void(op.fail("weight is not supported"));
  auto logarithm = [](const Tensor &x) {
    Tensor bounded = unary("log", x);
    return binary("max", bounded, like(bounded, -100));
  };
  const auto &[p, target] = *pair;
  outputReduced(op, unary("neg", target * logarithm(p) + (1.0 - target) * logarithm(1.0 - p)));
}

} // namespace

void addLosses(OpTable &table) {
  table["cross_entropy_loss.default"] = {
      [](OpScope &op) { lowerClassLoss(op, "cross_entropy"); },
      {"self", "target", "weight", "reduction", "ignore_index", "label_smoothing"}};
  for (const char *name : {"nll_loss.default", "nll_loss_nd.default", "nll_loss2d.default"})
    table[name] = {[](OpScope &op) { lowerClassLoss(op, "nll"); },
                   {"self", "target", "weight", "reduction", "ignore_index"}};
  table["mse_loss.default"] = {[](OpScope &op) { lowerElementLoss(op, "mse"); },
                               {"self", "target", "reduction"}};
  table["l1_loss.default"] = {[](OpScope &op) { lowerElementLoss(op, "l1"); },
                              {"self", "target", "reduction"}};
  table["huber_loss.default"] = {[](OpScope &op) { lowerElementLoss(op, "huber"); },
                                 {"self", "target", "reduction", "delta"}};
  table["smooth_l1_loss.default"] = {[](OpScope &op) { lowerElementLoss(op, "huber"); },
                                     {"self", "target", "reduction", "beta"}};
  table["binary_cross_entropy_with_logits.default"] = {
      lowerBceWithLogits, {"self", "target", "weight", "pos_weight", "reduction"}};
  table["binary_cross_entropy.default"] = {lowerBce, {"self", "target", "weight", "reduction"}};
}

} // namespace gpuc::torch
