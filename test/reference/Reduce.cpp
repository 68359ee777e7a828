//===- Reduce.cpp - Reductions and running sums ------------------------------===//

#include "test/reference/OpTable.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace gpuc::reference {

/// Folds the operand's elements into `start`, those of each result element in row-major order.
template <typename Op>
static Tensor folded(Op op, const Tensor &x, Element start,
                     llvm::function_ref<void(Element &, const Element &)> step) {
  Tensor result(typeOf(op.getResult()));
  llvm::fill(result.elements, start);
  Type element = result.type.getElementType();
  forEachIndex(x.shape(), [&](ArrayRef<int64_t> index) {
    Shape kept;
    for (auto [dim, coordinate] : llvm::enumerate(index))
      if (!llvm::is_contained(op.getDims(), static_cast<int64_t>(dim)))
        kept.push_back(coordinate);
    Element &target = result.elements[positionOf(kept, result.shape())];
    step(target, x.elements[positionOf(index, x.shape())]);
    if (!result.isFloat())
      target.integer = wrapped(target.integer, element);
  });
  return result;
}

static void addTo(Element &sum, const Element &x) {
  sum.real += x.real;
  sum.integer = static_cast<int64_t>(static_cast<uint64_t>(sum.integer) + static_cast<uint64_t>(x.integer));
}

static void multiply(Element &product, const Element &x) {
  product.real *= x.real;
  product.integer =
      static_cast<int64_t>(static_cast<uint64_t>(product.integer) * static_cast<uint64_t>(x.integer));
}

/// NaN once reached stays.
static bool replaces(double candidate, double best) {
  return std::isnan(candidate) ? !std::isnan(best) : candidate > best;
}

static void takeLarger(Element &best, const Element &x) {
  if (replaces(x.real, best.real))
    best.real = x.real;
  best.integer = std::max(best.integer, x.integer);
}

static void takeSmaller(Element &best, const Element &x) {
  if (replaces(-x.real, -best.real))
    best.real = x.real;
  best.integer = std::min(best.integer, x.integer);
}

static Tensor sum(ir::SumOp op, Operands x) { return folded(op, x[0], {0, 0}, addTo); }

static Tensor mean(ir::MeanOp op, Operands x) {
  Tensor result = folded(op, x[0], {0, 0}, addTo);
  double count = static_cast<double>(x[0].size()) / static_cast<double>(result.size());
  for (Element &element : result.elements)
    element.real /= count;
  return result;
}

static Tensor prod(ir::ProdOp op, Operands x) { return folded(op, x[0], {1, 1}, multiply); }

static Tensor reduceMax(ir::ReduceMaxOp op, Operands x) {
  return folded(op, x[0], {-std::numeric_limits<double>::infinity(), std::numeric_limits<int64_t>::min()},
                takeLarger);
}
static Tensor reduceMin(ir::ReduceMinOp op, Operands x) {
  return folded(op, x[0], {std::numeric_limits<double>::infinity(), std::numeric_limits<int64_t>::max()},
                takeSmaller);
}

static Tensor argmax(ir::ArgmaxOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  int64_t dim = op.getDim();
  forEachIndex(result.shape(), [&](ArrayRef<int64_t> index) {
    Shape source(index);
    source.insert(source.begin() + dim, 0);
    int64_t best = 0;
    Element largest = x[0].elements[positionOf(source, x[0].shape())];
    for (int64_t i = 1; i < x[0].shape()[dim]; ++i) {
      source[dim] = i;
      const Element &element = x[0].elements[positionOf(source, x[0].shape())];
      if (x[0].isFloat() ? replaces(element.real, largest.real) : element.integer > largest.integer) {
        largest = element;
        best = i;
      }
    }
    result.elements[positionOf(index, result.shape())].integer = best;
  });
  return result;
}

static Tensor cumsum(ir::CumsumOp op, Operands x) {
  Tensor result = x[0];
  int64_t dim = op.getDim(), stride = stridesOf(x[0].shape())[dim];
  forEachIndex(x[0].shape(), [&](ArrayRef<int64_t> index) {
    int64_t position = positionOf(index, x[0].shape());
    if (index[dim] == 0)
      return;
    Element &element = result.elements[position];
    addTo(element, result.elements[position - stride]);
    if (!result.isFloat())
      element.integer = wrapped(element.integer, result.type.getElementType());
  });
  return result;
}

/// Of one rank: 0 + x.
static Tensor allReduce(ir::AllReduceOp op, Operands x) {
  Tensor result = x[0];
  for (Element &element : result.elements)
    element.real += 0;
  return result;
}

/// Of one rank, which has all: 0 + x.
static Tensor reduceScatter(ir::ReduceScatterOp op, Operands x) {
  Tensor result = x[0];
  result.type = cast<RankedTensorType>(op.getType());
  for (Element &element : result.elements)
    element.real += 0;
  return result;
}

static Tensor allGather(ir::AllGatherOp op, Operands x) {
  Tensor result = x[0];
  result.type = cast<RankedTensorType>(op.getType());
  return result;
}

/// Of one rank, which owns the one tensor: 0 + x.
static Tensor reduceToOwners(ir::ReduceToOwnersOp op, Operands x) {
  Tensor result = x[0];
  for (Element &element : result.elements)
    element.real += 0;
  return result;
}

static Tensor gatherFromOwners(ir::GatherFromOwnersOp op, Operands x) { return x[0]; }

void addReduceOps(OpTable &table) {
  table.add<ir::SumOp>(sum);
  table.add<ir::MeanOp>(mean);
  table.add<ir::ProdOp>(prod);
  table.add<ir::ReduceMaxOp>(reduceMax);
  table.add<ir::ReduceMinOp>(reduceMin);
  table.add<ir::ArgmaxOp>(argmax);
  table.add<ir::CumsumOp>(cumsum);
  table.add<ir::AllReduceOp>(allReduce);
  table.add<ir::ReduceScatterOp>(reduceScatter);
  table.add<ir::AllGatherOp>(allGather);
  table.add<ir::ReduceToOwnersOp>(reduceToOwners);
  table.add<ir::GatherFromOwnersOp>(gatherFromOwners);
}

} // namespace gpuc::reference
