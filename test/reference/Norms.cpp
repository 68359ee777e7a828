//===- Norms.cpp - Normalisations, one group of elements after another -------===//

#include "test/reference/OpTable.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace gpuc::reference {

/// Positions of the elements of each group; an element's group is `groupOf` its index.
static std::vector<std::vector<int64_t>>
collectGroups(ArrayRef<int64_t> shape, int64_t groups,
              llvm::function_ref<int64_t(int64_t position, ArrayRef<int64_t> index)> groupOf) {
  std::vector<std::vector<int64_t>> members(groups);
  forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    int64_t position = positionOf(index, shape);
    members[groupOf(position, index)].push_back(position);
  });
  return members;
}

/// Rows of all dimensions from `dim` on.
template <typename Op> static std::vector<std::vector<int64_t>> rowsOf(Op op, const Tensor &x) {
  int64_t length = 1;
  for (int64_t extent : x.shape().drop_front(op.getDim()))
    length *= extent;
  return collectGroups(x.shape(), x.size() / length,
                       [&](int64_t position, ArrayRef<int64_t>) { return position / length; });
}

struct Moments {
  double mean = 0, variance = 0; ///< Divided by the number of elements.
};

static Moments momentsOf(const Tensor &x, ArrayRef<int64_t> group) {
  auto count = static_cast<double>(group.size());
  Moments moments;
  for (int64_t i : group)
    moments.mean += x.elements[i].real / count;
  for (int64_t i : group)
    moments.variance += std::pow(x.elements[i].real - moments.mean, 2) / count;
  return moments;
}

static Results layerNorm(ir::LayerNormOp op, Operands x) {
  Tensor y = x[0], mean(typeOf(op.getMean())), inverse(typeOf(op.getInverseDeviation()));
  auto rows = rowsOf(op, x[0]);
  for (size_t row = 0; row < rows.size(); ++row) {
    Moments moments = momentsOf(x[0], rows[row]);
    double r = 1 / std::sqrt(moments.variance + op.getEps().convertToDouble());
    for (size_t i = 0; i < rows[row].size(); ++i) {
      double &element = y.elements[rows[row][i]].real;
      element = (element - moments.mean) * r;
      if (op.getWeight())
        element *= x[1].elements[i].real;
      if (op.getBias())
        element += x.back().elements[i].real;
    }
    mean.elements[row].real = moments.mean;
    inverse.elements[row].real = r;
  }
  return {y, mean, inverse};
}

static Results rmsNorm(ir::RmsNormOp op, Operands x) {
  Tensor y = x[0], inverse(typeOf(op.getInverseRms()));
  auto rows = rowsOf(op, x[0]);
  for (size_t row = 0; row < rows.size(); ++row) {
    double squares = 0;
    for (int64_t i : rows[row])
      squares += std::pow(x[0].elements[i].real, 2);
    double r = 1 / std::sqrt(squares / static_cast<double>(rows[row].size()) + op.getEps().convertToDouble());
    for (size_t i = 0; i < rows[row].size(); ++i)
      y.elements[rows[row][i]].real *= op.getWeight() ? r * x[1].elements[i].real : r;
    inverse.elements[row].real = r;
  }
  return {y, inverse};
}

/// In its training form, on one rank.
static Results batchNorm(ir::BatchNormOp op, Operands x) {
  Tensor y = x[0], runningMean = x[1], runningVariance = x[2], mean(x[1].type), inverse(x[1].type);
  double momentum = op.getMomentum().convertToDouble();
  auto channels =
      collectGroups(x[0].shape(), x[0].shape()[1], [](int64_t, ArrayRef<int64_t> index) { return index[1]; });
  const Tensor *bias = op.getBias() ? &x[op.getWeight() ? 4 : 3] : nullptr;
  const int64_t rows = op.getRows() ? x.back().elements[0].integer : x[0].shape()[0];
  for (size_t c = 0; c < channels.size(); ++c) {
    std::vector<int64_t> counted = channels[c]; // in the order of rows
    counted.resize(channels[c].size() / x[0].shape()[0] * std::clamp<int64_t>(rows, 0, x[0].shape()[0]));
    auto count = static_cast<double>(counted.size());
    Moments moments = momentsOf(x[0], counted);
    double r = 1 / std::sqrt(moments.variance + op.getEps().convertToDouble());
    for (int64_t i : channels[c]) {
      double &element = y.elements[i].real;
      element = (element - moments.mean) * r;
      if (op.getWeight())
        element *= x[3].elements[c].real;
      if (bias)
        element += bias->elements[c].real;
    }
    double unbiased = count == 1 ? moments.variance : moments.variance * count / (count - 1);
    mean.elements[c].real = moments.mean;
    inverse.elements[c].real = r;
    if (counted.empty())
      continue;
    runningMean.elements[c].real += momentum * (moments.mean - runningMean.elements[c].real);
    runningVariance.elements[c].real += momentum * (unbiased - runningVariance.elements[c].real);
  }
  return {y, runningMean, runningVariance, mean, inverse};
}

void addNormOps(OpTable &table) {
  table.add<ir::LayerNormOp>(layerNorm);
  table.add<ir::RmsNormOp>(rmsNorm);
  table.add<ir::BatchNormOp>(batchNorm);
}

} // namespace gpuc::reference
