//===- Sort.cpp - Elements in order -------------------------------------------===//

#include "test/reference/OpTable.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace gpuc::reference {

/// a < b, where NaN is above all else.
static bool isLess(const Tensor &x, int64_t a, int64_t b) {
  if (!x.isFloat())
    return x.elements[a].integer < x.elements[b].integer;
  double first = x.elements[a].real, second = x.elements[b].real;
  return std::isnan(second) ? !std::isnan(first) : first < second;
}

/// The first elements of each row along `dim`, in order: as many as the results have there.
static Results sorted(ResultRange results, const Tensor &x, int64_t dim, bool descending) {
  Tensor values(typeOf(results[0])), indices(typeOf(results[1]));
  int64_t stride = stridesOf(x.shape())[dim];
  forEachIndex(values.shape(), [&](ArrayRef<int64_t> index) {
    if (index[dim] != 0)
      return;
    int64_t row = positionOf(index, x.shape());
    auto comesBefore = [&](int64_t a, int64_t b) {
      a = row + a * stride;
      b = row + b * stride;
      return descending ? isLess(x, b, a) : isLess(x, a, b);
    };
    std::vector<int64_t> order; // each behind those that it equals
    for (int64_t i = 0; i < x.shape()[dim]; ++i)
      order.insert(std::upper_bound(order.begin(), order.end(), i, comesBefore), i);
    Shape target(index);
    for (int64_t i = 0; i < values.shape()[dim]; ++i) {
      target[dim] = i;
      int64_t position = positionOf(target, values.shape());
      values.elements[position] = x.elements[row + order[i] * stride];
      indices.elements[position].integer = order[i];
    }
  });
  return {values, indices};
}

static Results sort(ir::SortOp op, Operands x) {
  return sorted(op->getResults(), x[0], op.getDim(), op.getDescending());
}

static Results topK(ir::TopKOp op, Operands x) {
  return sorted(op->getResults(), x[0], op.getDim(), !op.getSmallest());
}

void addSortOps(OpTable &table) {
  table.add<ir::SortOp>(sort);
  table.add<ir::TopKOp>(topK);
}

} // namespace gpuc::reference
