//===- Network.cpp - Softmax, losses and metrics by their definitions --------===//

#include "test/reference/OpTable.h"

#include <cmath>

using namespace mlir;

namespace gpuc::reference {

//===----------------------------------------------------------------------===//
// Along a dimension
//===----------------------------------------------------------------------===//

/// log Σ exp(x) over `count` elements `stride` apart. The largest is taken out, so that nothing overflows.
static double logSumExp(const Tensor &x, int64_t first, int64_t count, int64_t stride) {
  double largest = -INFINITY;
  for (int64_t i = 0; i < count; ++i) {
    double element = x.elements[first + i * stride].real;
    largest = std::isnan(element) ? element : std::max(largest, element);
  }
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += std::exp(x.elements[first + i * stride].real - largest);
  return largest + std::log(sum);
}

/// log softmax along `dim`.
static Tensor logSoftmax(const Tensor &x, int64_t dim) {
  Tensor result = x;
  int64_t stride = stridesOf(x.shape())[dim], count = x.shape()[dim];
  forEachIndex(x.shape(), [&](ArrayRef<int64_t> index) {
    if (index[dim] != 0)
      return;
    int64_t first = positionOf(index, x.shape());
    double logSum = logSumExp(x, first, count, stride);
    for (int64_t i = 0; i < count; ++i)
      result.elements[first + i * stride].real -= logSum;
  });
  return result;
}

static Tensor softmax(ir::SoftmaxOp op, Operands x) {
  Tensor result = logSoftmax(x[0], op.getDim());
  for (Element &element : result.elements)
    element.real = std::exp(element.real);
  return result;
}

//===----------------------------------------------------------------------===//
// Losses and metrics: (sum, count)
//===----------------------------------------------------------------------===//

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

/// Calls `body` with each row of logits (…, C) that counts and its label, a class other than the ignored one.
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

/// -(1 - s) log p[label] - s / C Σ log p, with smoothing s.
static Results crossEntropy(ir::CrossEntropyOp op, Operands x) {
  int64_t classes = x[0].shape().back();
  Tensor logProbabilities = logSoftmax(x[0], x[0].shape().size() - 1);
  double smoothing = op.getSmoothing().convertToDouble(), sum = 0;
  double count = forEachCountedRow(op, x, [&](int64_t row, int64_t label) {
    sum -= (1 - smoothing) * logProbabilities.elements[row * classes + label].real;
    for (int64_t c = 0; smoothing != 0 && c < classes; ++c)
      sum -= smoothing / static_cast<double>(classes) * logProbabilities.elements[row * classes + c].real;
  });
  return sumAndCount(op, sum, count);
}

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

static Results mse(ir::MseOp op, Operands x) {
  double sum = 0, count = 0;
  for (int64_t i = 0; i < x[0].size(); ++i) {
    if (isMaskedOut(op.getMask(), x, i, x[0].size()))
      continue;
    double difference = x[0].elements[i].real - x[1].elements[i].real;
    sum += difference * difference;
    ++count;
  }
  return sumAndCount(op, sum, count);
}

void addNetworkOps(OpTable &table) {
  table.add<ir::SoftmaxOp>(softmax);
  table.add<ir::LogSoftmaxOp>([](ir::LogSoftmaxOp op, Operands x) { return logSoftmax(x[0], op.getDim()); });
  table.add<ir::CrossEntropyOp>(crossEntropy);
  table.add<ir::AccuracyOp>(accuracy);
  table.add<ir::MseOp>(mse);
}

} // namespace gpuc::reference
