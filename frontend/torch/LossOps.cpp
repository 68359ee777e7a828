//===- LossOps.cpp - Losses -----------------------------------------------------===//
//
// The dialect's losses give a sum and a count, of which a mean is the quotient. Where such a quotient is all
// of the step's loss, the recipe takes the two apart again.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Formulas.h"
#include "frontend/onnx/ops/Activations.h"
#include "frontend/torch/OpTable.h"

namespace gpuc::torch {
namespace {

/// PyTorch's numbers of reductions.
enum Reduction { kNone, kMean, kSum };

Reduction reductionOf(OpScope &op) { return static_cast<Reduction>(op.integer("reduction", kMean)); }

/// Whether the dialect has an op for it: one that gives a sum, over rows that are those of the batch or a
/// multiple of them, since it is by rows that padding is left out.
bool isOfDialect(OpScope &op, const Tensor &prediction) {
  return reductionOf(op) != kNone && prediction.rank() != 0 && prediction.extent(0) % op.batch == 0;
}

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
  op.output(reductionOf(op) == kNone ? reshape(losses, op.shape())
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

/// A number for each class, beside scores whose last dimension is that of classes.
Tensor besideClasses(const Tensor &weight, const Tensor &scores) {
  return onnx::beside(weight, scores.rank() - 1, scores.rank());
}

/// -Σ target · log softmax over classes, where the target is a distribution.
void lowerSoftCrossEntropy(OpScope &op, const Tensor &scores, Tensor target) {
  Tensor last = classesLast(scores);
  target = classesLast(target);
  if (const double smoothing = op.number("label_smoothing", 0); smoothing != 0)
    target = target * (1 - smoothing) + smoothing / static_cast<double>(last.extent(last.rank() - 1));
  Tensor products = target * along("log_softmax", last, -1);
  if (op.has("weight"))
    products = products * besideClasses(op.tensor("weight"), products);
  Tensor losses = unary("neg", reduce("sum", products, {last.rank() - 1}, /*keep=*/false));
  outputReduced(op, losses);
}

/// What a label names of the last dimension of `scores`.
Tensor namedBy(const Tensor &labels, const Tensor &scores) {
  Tensor indices = unsqueeze(labels, {labels.rank()});
  Tensor flat = reshape(scores, {onnx::countOf(scores.shape(), 0, scores.rank())});
  return reshape(onnx::gather(flat, onnx::linearize(scores, indices, scores.rank() - 1), 0), labels.shape());
}

/// A class loss as a formula, each label's or the mean or sum of all.
void lowerClassLosses(OpScope &op, Tensor logs, const Tensor &labels, int64_t ignored) {
  Tensor counts = compare("ne", labels, like(labels, static_cast<double>(ignored)));
  Tensor known = select(counts, labels, like(labels, 0));
  Tensor losses = unary("neg", namedBy(known, logs)), weight = like(losses, 1);
  if (op.has("weight")) {
    Tensor given = cast(op.tensor("weight"), logs.type());
    weight = reshape(onnx::gather(given, known, 0), labels.shape());
    losses = losses * weight;
    logs = logs * besideClasses(given, logs);
  }
  if (const double smoothing = op.number("label_smoothing", 0); smoothing != 0) {
    Tensor all = unary("neg", reduce("sum", logs, {logs.rank() - 1}, /*keep=*/false));
    losses = losses * (1 - smoothing) + all * (smoothing / static_cast<double>(logs.extent(logs.rank() - 1)));
  }
  losses = select(counts, losses, like(losses, 0));
  if (reductionOf(op) != kMean)
    return outputReduced(op, losses);
  const Shape everywhere = onnx::dimsFrom(0, losses.rank());
  op.output(reduce("sum", losses, everywhere, false) /
            reduce("sum", select(counts, weight, like(weight, 0)), everywhere, false));
}

void lowerClassLoss(OpScope &op, const char *name) {
  Tensor scores = op.tensor("self"), labels = op.tensor("target");
  if (!scores || !labels)
    return;
  if (labels.isFloat())
    return lowerSoftCrossEntropy(op, scores, labels);
  if (scores.rank() == 1) // Of one row, without a batch.
    scores = unsqueeze(scores, {0}), labels = reshape(labels, {1});
  const int64_t ignored = op.integer("ignore_index", -100);
  limitRange(labels, scores.extent(1), ignored);
  Tensor last = classesLast(scores);
  if (!isOfDialect(op, last))
    return lowerClassLosses(op, std::string(name) == "nll" ? last : along("log_softmax", last, -1), labels,
                            ignored);
  Emitter &e = op.emitter;
  std::vector<Tensor> operands = {last, labels};
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

/// Up to `delta` the square, beyond it a line.
Tensor huber(const Tensor &difference, double delta) {
  Tensor size = unary("abs", difference);
  return select(compare("lt", size, delta), difference * difference * 0.5, (size - 0.5 * delta) * delta);
}

void lowerElementLoss(OpScope &op, const char *name) {
  auto pair = readPair(op);
  if (!pair)
    return;
  const std::string kind = name;
  // Over beta huber is smooth_l1.
  const double delta = op.number(op.has("beta") ? "beta" : "delta", 1);
  const double scale = op.node.op.starts_with("smooth") ? 1 / delta : 1;
  if (kind == "huber" && delta <= 0)
    return void(op.fail("beta is not above 0: use l1_loss"));
  if (!isOfDialect(op, pair->first)) {
    Tensor difference = pair->first - pair->second;
    Tensor losses = kind == "mse"     ? difference * difference
                    : kind == "huber" ? huber(difference, delta)
                                      : unary("abs", difference);
    return outputReduced(op, scale == 1 ? losses : losses * scale);
  }
  Emitter &e = op.emitter;
  std::vector<mlir::NamedAttribute> attributes;
  if (kind == "huber")
    attributes.push_back(e.attribute("delta", delta));
  outputReduced(op, e.emit(name, {pair->first, pair->second}, attributes), scale);
}

/// (1 - target) · x + (1 + (pos_weight - 1) · target) · softplus(-x), times the weight.
void lowerBceLosses(OpScope &op, const Tensor &scores, const Tensor &target) {
  Tensor ofOnes = onnx::activationNamed("softplus")->formula(unary("neg", scores), 0, 0);
  if (op.has("pos_weight"))
    ofOnes = ofOnes * ((op.tensor("pos_weight") - 1) * target + 1);
  Tensor losses = (1.0 - target) * scores + ofOnes;
  outputReduced(op, op.has("weight") ? losses * op.tensor("weight") : losses);
}

void lowerBceWithLogits(OpScope &op) {
  auto pair = readPair(op);
  if (!pair)
    return;
  if (op.has("weight") || !isOfDialect(op, pair->first))
    return lowerBceLosses(op, pair->first, pair->second);
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
  auto logarithm = [](const Tensor &x) {
    Tensor bounded = unary("log", x);
    return binary("max", bounded, like(bounded, -100));
  };
  const auto &[p, target] = *pair;
  Tensor losses = unary("neg", target * logarithm(p) + (1.0 - target) * logarithm(1.0 - p));
  outputReduced(op, op.has("weight") ? losses * op.tensor("weight") : losses);
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
