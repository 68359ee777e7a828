//===- LinearLosses.cpp - Losses of a linear layer's logits, row by row ------===//

#include "test/reference/OpTable.h"

#include <cmath>
#include <optional>

using namespace mlir;

namespace gpuc::reference {

static Tensor scalarOf(Value result, double number) { return Tensor(typeOf(result), {number}); }

namespace {
/// The operands of an op whose logits are hidden · weightᵀ + bias.
struct Linear {
  template <typename Op> Linear(Op op, Operands x) : hidden(x[0]), weight(x[1]) {
    size_t next = 2;
    bias = op.getBias() ? &x[next++] : nullptr;
    labels = &x[next++];
    if constexpr (requires { op.getClassWeight(); })
      classWeight = op.getClassWeight() ? &x[next++] : nullptr;
    mask = op.getMask() ? &x[next++] : nullptr;
  }

  int64_t classes() const { return weight.shape()[0]; }
  int64_t features() const { return weight.shape()[1]; }

  std::vector<double> logits(int64_t row) const {
    std::vector<double> y;
    for (int64_t c = 0; c < classes(); ++c) {
      y.push_back(bias ? bias->elements[c].real : 0);
      for (int64_t f = 0; f < features(); ++f)
        y.back() += hidden.elements[row * features() + f].real * weight.elements[c * features() + f].real;
    }
    return y;
  }

  /// The label of a row that counts; nothing of another.
  std::optional<int64_t> counted(int64_t row, int64_t ignored) const {
    int64_t label = labels->elements[row].integer;
    bool masked = mask && !mask->elements[row / (labels->size() / mask->size())].integer;
    if (masked || label < 0 || label >= classes() || label == ignored)
      return std::nullopt;
    return label;
  }

  double weightOf(int64_t c) const { return classWeight ? classWeight->elements[c].real : 1; }

  const Tensor &hidden, &weight;
  const Tensor *bias = nullptr, *labels = nullptr, *classWeight = nullptr, *mask = nullptr;
};
} // namespace

/// Sum and count; `atRow` sees each row that counts, with the derivative of its loss by the logits: of
/// Σ_c a_c · (log Σ exp - logit_c) with a_c the factors of -log p_c.
template <typename Op>
static Results forEachLoss(Op op, const Linear &linear,
                           llvm::function_ref<void(int64_t, ArrayRef<double>)> atRow) {
  double sum = 0, count = 0, smoothing = op.getSmoothing().convertToDouble();
  for (int64_t row = 0; row < linear.labels->size(); ++row) {
    std::optional<int64_t> label = linear.counted(row, op.getIgnoreIndex());
    if (!label)
      continue;
    std::vector<double> y = linear.logits(row), slope(y.size());
    double largest = y[0], exponentials = 0, factors = 0;
    for (double logit : y)
      largest = std::fmax(largest, logit);
    for (double logit : y)
      exponentials += std::exp(logit - largest);
    auto factor = [&](int64_t c) {
      return linear.weightOf(c) * (smoothing / linear.classes() + (c == *label ? 1 - smoothing : 0));
    };
    for (int64_t c = 0; c < linear.classes(); ++c) {
      sum += factor(c) == 0 ? 0 : factor(c) * (std::log(exponentials) + largest - y[c]);
      factors += factor(c);
    }
    for (int64_t c = 0; c < linear.classes(); ++c)
      slope[c] = factors * std::exp(y[c] - largest) / exponentials - factor(c);
    count += linear.weightOf(*label);
    atRow(row, slope);
  }
  return {scalarOf(op.getSum(), sum), scalarOf(op.getCount(), count)};
}

static Results linearCrossEntropy(ir::LinearCrossEntropyOp op, Operands x) {
  return forEachLoss(op, Linear(op, x), [](int64_t, ArrayRef<double>) {});
}

static Results linearCrossEntropyGradient(ir::LinearCrossEntropyGradientOp op, Operands x) {
  Linear linear(op, x);
  Tensor hidden(typeOf(op.getHiddenGradient())), weight(typeOf(op.getWeightGradient())), bias;
  if (op.getBias())
    bias = Tensor(typeOf(op.getBiasGradient()));
  int64_t features = linear.features();
  Results results = forEachLoss(op, linear, [&](int64_t row, ArrayRef<double> slope) {
    for (int64_t c = 0; c < linear.classes(); ++c) {
      for (int64_t f = 0; f < features; ++f) {
        hidden.elements[row * features + f].real += slope[c] * linear.weight.elements[c * features + f].real;
        weight.elements[c * features + f].real += slope[c] * linear.hidden.elements[row * features + f].real;
      }
      if (linear.bias)
        bias.elements[c].real += slope[c];
    }
  });
  results.insert(results.end(), {hidden, weight});
  if (linear.bias)
    results.push_back(bias);
  return results;
}

/// Of equal logits the first is the largest, and a NaN before all.
static Results linearAccuracy(ir::LinearAccuracyOp op, Operands x) {
  Linear linear(op, x);
  double correct = 0, count = 0;
  for (int64_t row = 0; row < linear.labels->size(); ++row) {
    std::optional<int64_t> label = linear.counted(row, op.getIgnoreIndex());
    if (!label)
      continue;
    std::vector<double> y = linear.logits(row);
    size_t best = 0;
    for (size_t c = 1; c < y.size(); ++c)
      if (std::isnan(y[c]) ? !std::isnan(y[best]) : y[c] > y[best])
        best = c;
    correct += best == static_cast<size_t>(*label);
    ++count;
  }
  return {scalarOf(op.getSum(), correct), scalarOf(op.getCount(), count)};
}

void addLinearLossOps(OpTable &table) {
  table.add<ir::LinearCrossEntropyOp>(linearCrossEntropy);
  table.add<ir::LinearCrossEntropyGradientOp>(linearCrossEntropyGradient);
  table.add<ir::LinearAccuracyOp>(linearAccuracy);
}

} // namespace gpuc::reference
