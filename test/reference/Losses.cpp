//===- Losses.cpp - Losses and metrics by their definitions: (sum, count) ----===//

#include "test/reference/OpTable.h"

#include <cmath>

using namespace mlir;

namespace gpuc::reference {

static Results sumAndCount(Operation *op, double sum, double count) {
  Tensor total(typeOf(op->getResult(0))), counted(typeOf(op->getResult(1)));
  total.elements[0].real = sum;
  counted.elements[0].real = count;
  return {total, counted};
}

/// A row counts if the mask, one i1 for each entry of the first dimension, does not leave it out.
static bool isMaskedOut(Value mask, Operands x, int64_t row, int64_t rows) {
  if (!mask)
    return false;
  const Tensor &flags = x.back();
  return !flags.elements[row / (rows / flags.size())].integer;
}

//===----------------------------------------------------------------------===//
// By class
//===----------------------------------------------------------------------===//

/// Calls `body` with each row of logits (…, C) that counts and its label, a class other than the ignored one;
/// returns how many.
template <typename Op>
static double forEachCountedRow(Op op, Operands x,
                                llvm::function_ref<void(int64_t row, int64_t label)> body) {
  const Tensor &labels = x[1];
  int64_t classes = x[0].shape().back(), ignored = op.getIgnoreIndex();
  double count = 0;
  for (int64_t row = 0; row < labels.size(); ++row) {
    int64_t label = labels.elements[row].integer;
    if (label < 0 || label >= classes || label == ignored || isMaskedOut(op.getMask(), x, row, labels.size()))
      continue;
    body(row, label);
    ++count;
  }
  return count;
}

/// Σ -(1 - s) w[label] log p[label] - s / C Σ w log p, with smoothing s, and Σ w[label]. Without weights w
/// is 1.
template <typename Op>
static Results classLoss(Op op, const Tensor &logProbabilities, double smoothing, Operands x) {
  int64_t classes = x[0].shape().back();
  auto weight = [&](int64_t c) { return op.getWeight() ? x[2].elements[c].real : 1; };
  double sum = 0, count = 0;
  forEachCountedRow(op, x, [&](int64_t row, int64_t label) {
    sum -= (1 - smoothing) * weight(label) * logProbabilities.elements[row * classes + label].real;
    for (int64_t c = 0; smoothing != 0 && c < classes; ++c)
      sum -= smoothing / static_cast<double>(classes) * weight(c) *
             logProbabilities.elements[row * classes + c].real;
    count += weight(label);
  });
  return sumAndCount(op, sum, count);
}

static Results crossEntropy(ir::CrossEntropyOp op, Operands x) {
  Tensor logProbabilities = logSoftmax(x[0], static_cast<int64_t>(x[0].shape().size()) - 1);
  return classLoss(op, logProbabilities, op.getSmoothing().convertToDouble(), x);
}

static Results nll(ir::NllOp op, Operands x) { return classLoss(op, x[0], 0, x); }

static Results accuracy(ir::AccuracyOp op, Operands x) {
  int64_t classes = x[0].shape().back();
  double correct = 0;
  double count = forEachCountedRow(op, x, [&](int64_t row, int64_t label) {
    int64_t best = 0;
    for (int64_t c = 1; c < classes; ++c) {
      double candidate = x[0].elements[row * classes + c].real,
             largest = x[0].elements[row * classes + best].real;
      if (std::isnan(candidate) ? !std::isnan(largest) : candidate > largest)
        best = c;
    }
    correct += best == label;
  });
  return sumAndCount(op, correct, count);
}

//===----------------------------------------------------------------------===//
// By element
//===----------------------------------------------------------------------===//

/// Σ loss(prediction, target, position) over what counts.
template <typename Op, typename Loss> static Results elementLoss(Op op, Operands x, Loss loss) {
  double sum = 0, count = 0;
  for (int64_t i = 0; i < x[0].size(); ++i) {
    if (isMaskedOut(op.getMask(), x, i, x[0].size()))
      continue;
    sum += loss(x[0].elements[i].real, x[1].elements[i].real, i);
    ++count;
  }
  return sumAndCount(op, sum, count);
}

static Results mse(ir::MseOp op, Operands x) {
  return elementLoss(op, x, [](double p, double t, int64_t) { return (p - t) * (p - t); });
}

static Results l1(ir::L1Op op, Operands x) {
  return elementLoss(op, x, [](double p, double t, int64_t) { return std::abs(p - t); });
}

static Results huber(ir::HuberOp op, Operands x) {
  double delta = op.getDelta().convertToDouble();
  return elementLoss(op, x, [&](double p, double t, int64_t) {
    double d = std::abs(p - t);
    return d <= delta ? d * d / 2 : delta * (d - delta / 2);
  });
}

/// The element of `small` that stands beside element `position` of a tensor of `shape`: dimensions are
/// aligned at the last, extents of 1 repeat.
static double broadcastElement(const Tensor &small, ArrayRef<int64_t> shape, int64_t position) {
  int64_t at = 0, stride = 1;
  for (size_t back = 1; back <= shape.size(); ++back) {
    int64_t extent = shape[shape.size() - back];
    if (back <= small.shape().size()) {
      int64_t own = small.shape()[small.shape().size() - back];
      at += own == 1 ? 0 : position % extent * stride;
      stride *= own;
    }
    position /= extent;
  }
  return small.elements[at].real;
}

/// -(p t log σ(x) + (1 - t) log(1 - σ(x))), as (1 - t) x + (1 + (p - 1) t) log(1 + e^-x).
static Results bceWithLogits(ir::BceWithLogitsOp op, Operands x) {
  return elementLoss(op, x, [&](double logit, double t, int64_t position) {
    double p = op.getPositiveWeight() ? broadcastElement(x[2], x[0].shape(), position) : 1;
    double softplus = logit > 0 ? std::log1p(std::exp(-logit)) : std::log1p(std::exp(logit)) - logit;
    return (1 - t) * logit + (1 + (p - 1) * t) * softplus;
  });
}

void addLossOps(OpTable &table) {
  table.add<ir::CrossEntropyOp>(crossEntropy);
  table.add<ir::NllOp>(nll);
  table.add<ir::AccuracyOp>(accuracy);
  table.add<ir::MseOp>(mse);
  table.add<ir::L1Op>(l1);
  table.add<ir::HuberOp>(huber);
  table.add<ir::BceWithLogitsOp>(bceWithLogits);
}

} // namespace gpuc::reference
