//===- Attention.cpp - Attention and its gradient, one query after another ---===//

#include "test/reference/OpTable.h"

#include <cmath>

using namespace mlir;

namespace gpuc::reference {

namespace {

/// The operands of attention or of its gradient.
template <typename Op> struct Attention {
  mutable Op op; // an op's getters are not const
  const Tensor &query, &key, &value;
  const Tensor *mask; ///< Null without one.
  const Interpreter &state;
  int64_t batches = query.shape()[0], heads = query.shape()[1], queries = query.shape()[2],
          length = query.shape()[3], groups = key.shape()[1], keys = key.shape()[2], width = value.shape()[3];
  double scale =
      op.getScale() ? op.getScale()->convertToDouble() : 1 / std::sqrt(static_cast<double>(length));
  double p = op.getDropout().convertToDouble();

  /// Row-major position of the row of key or value that query head h sees as key s.
  int64_t keyRow(int64_t b, int64_t h, int64_t s) const {
    return (b * groups + h / (heads / groups)) * keys + s;
  }

  double score(int64_t b, int64_t h, int64_t t, int64_t s) const {
    if (op.getCausal() && s > t)
      return -INFINITY;
    double sum = 0;
    for (int64_t d = 0; d < length; ++d)
      sum += query.elements[((b * heads + h) * queries + t) * length + d].real *
             key.elements[keyRow(b, h, s) * length + d].real;
    sum *= scale;
    if (!mask)
      return sum;
    const Element &element = mask->elements[maskPosition(b, h, t, s)];
    if (mask->isFloat())
      return sum + element.real;
    return element.integer ? sum : -INFINITY;
  }

  int64_t maskPosition(int64_t b, int64_t h, int64_t t, int64_t s) const {
    const int64_t scores[] = {b, h, t, s};
    int64_t position = 0;
    size_t rank = mask->shape().size();
    for (size_t dim = 0; dim < rank; ++dim)
      position = position * mask->shape()[dim] + (mask->shape()[dim] == 1 ? 0 : scores[4 - rank + dim]);
    return position;
  }

  /// What dropout multiplies the probability with.
  double factor(int64_t row, int64_t s) const {
    if (p == 0)
      return 1;
    return p < 1 && isKept(state, op.getId(), p, row * keys + s) ? 1 / (1 - p) : 0;
  }

  /// Calls `body` with each query, and its row in [B, H, T].
  template <typename Body> void forEachQuery(Body body) const {
    int64_t row = 0;
    for (int64_t b = 0; b < batches; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t t = 0; t < queries; ++t)
          body(row++, b, h, t);
  }
};

} // namespace

static Results attention(ir::AttentionOp op, Operands x, const Interpreter &state) {
  Attention<ir::AttentionOp> heads{op, x[0], x[1], x[2], op.getMask() ? &x[3] : nullptr, state};
  Tensor result(typeOf(op.getResult())), logSumExp(typeOf(op.getLogSumExp()));
  heads.forEachQuery([&](int64_t row, int64_t b, int64_t h, int64_t t) {
    std::vector<double> scores;
    double largest = -INFINITY, sum = 0;
    for (int64_t s = 0; s < heads.keys; ++s) {
      scores.push_back(heads.score(b, h, t, s));
      largest = std::isnan(scores.back()) ? scores.back() : std::max(largest, scores.back());
    }
    double &log = logSumExp.elements[row].real;
    log = -INFINITY;
    if (largest == -INFINITY)
      return; // sees no key
    for (double score : scores)
      sum += std::exp(score - largest);
    log = largest + std::log(sum);
    for (int64_t s = 0; s < heads.keys; ++s)
      for (int64_t e = 0; e < heads.width; ++e)
        result.elements[row * heads.width + e].real +=
            std::exp(scores[s] - largest) / sum * heads.factor(row, s) *
            x[2].elements[heads.keyRow(b, h, s) * heads.width + e].real;
  });
  return {result, logSumExp};
}

/// As the op's description: from the result and the logarithms that it is given.
static Results attentionGradient(ir::AttentionGradientOp op, Operands x, const Interpreter &state) {
  const Tensor &ct = x[0], &result = x[1], &logSumExp = x[2], &query = x[3], &key = x[4], &value = x[5];
  Attention<ir::AttentionGradientOp> heads{op, query, key, value, op.getMask() ? &x[6] : nullptr, state};
  Results cotangents;
  for (Value each : op->getResults())
    cotangents.emplace_back(typeOf(each));
  heads.forEachQuery([&](int64_t row, int64_t b, int64_t h, int64_t t) {
    double log = logSumExp.elements[row].real, delta = 0;
    int64_t width = heads.width, length = heads.length;
    for (int64_t e = 0; e < width; ++e)
      delta += ct.elements[row * width + e].real * result.elements[row * width + e].real;
    for (int64_t s = 0; s < heads.keys; ++s) {
      double p = std::exp(heads.score(b, h, t, s) - (log == -INFINITY ? 0 : log)), dp = 0;
      int64_t other = heads.keyRow(b, h, s);
      for (int64_t e = 0; e < width; ++e) {
        double dropped = heads.factor(row, s) * ct.elements[row * width + e].real;
        dp += dropped * value.elements[other * width + e].real;
        cotangents[2].elements[other * width + e].real += p * dropped;
      }
      double ds = p * (dp - delta);
      for (int64_t d = 0; d < length; ++d) {
        cotangents[0].elements[row * length + d].real +=
            heads.scale * ds * key.elements[other * length + d].real;
        cotangents[1].elements[other * length + d].real +=
            heads.scale * ds * query.elements[row * length + d].real;
      }
      if (cotangents.size() > 3)
        cotangents[3].elements[heads.maskPosition(b, h, t, s)].real += ds;
    }
  });
  return cotangents;
}

void addAttentionOps(OpTable &table) {
  table.add<ir::AttentionOp>(attention);
  table.add<ir::AttentionGradientOp>(attentionGradient);
}

} // namespace gpuc::reference
