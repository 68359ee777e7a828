//===- Network.cpp - Softmax by its definition --------------------------------===//

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

Tensor logSoftmax(const Tensor &x, int64_t dim) {
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

void addNetworkOps(OpTable &table) {
  table.add<ir::SoftmaxOp>(softmax);
  table.add<ir::LogSoftmaxOp>([](ir::LogSoftmaxOp op, Operands x) { return logSoftmax(x[0], op.getDim()); });
}

} // namespace gpuc::reference
