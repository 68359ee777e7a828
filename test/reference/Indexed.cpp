//===- Indexed.cpp - Ops whose addresses are data ----------------------------===//

#include "test/reference/OpTable.h"

using namespace mlir;

namespace gpuc::reference {

/// Visits gather(source, indices): `body` gets where an element of the slices lies and where in the source it
/// belongs. Indices out of range are left out.
static void forEachChosen(ArrayRef<int64_t> source, const Tensor &indices, int64_t dim,
                          ArrayRef<int64_t> slices,
                          llvm::function_ref<void(int64_t slice, int64_t source)> body) {
  int64_t rank = indices.shape().size();
  forEachIndex(slices, [&](ArrayRef<int64_t> index) {
    int64_t chosen = indices.elements[positionOf(index.slice(dim, rank), indices.shape())].integer;
    if (chosen < 0 || chosen >= source[dim])
      return;
    Shape from(index.take_front(dim));
    from.push_back(chosen);
    from.append(index.begin() + dim + rank, index.end());
    body(positionOf(index, slices), positionOf(from, source));
  });
}

static Tensor gather(ir::GatherOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  forEachChosen(x[0].shape(), x[1], op.getDim(), result.shape(),
                [&](int64_t slice, int64_t source) { result.elements[slice] = x[0].elements[source]; });
  return result;
}

static Tensor scatterAdd(ir::ScatterAddOp op, Operands x) {
  Tensor result = x[0];
  const Tensor &updates = x[2];
  forEachChosen(result.shape(), x[1], op.getDim(), updates.shape(), [&](int64_t slice, int64_t target) {
    Element &sum = result.elements[target];
    const Element &update = updates.elements[slice];
    if (result.isFloat())
      sum.real += update.real;
    else
      sum.integer = wrapped(sum.integer + update.integer, result.type.getElementType());
  });
  return result;
}

/// Where a window of extents `sizes` begins, clamped so that it lies inside `shape`.
static Shape windowStart(const Tensor &start, ArrayRef<int64_t> shape, ArrayRef<int64_t> sizes) {
  Shape clamped;
  for (auto [dim, element] : llvm::enumerate(start.elements))
    clamped.push_back(std::clamp<int64_t>(element.integer, 0, shape[dim] - sizes[dim]));
  return clamped;
}

static Shape shifted(ArrayRef<int64_t> index, ArrayRef<int64_t> start) {
  Shape sum(index);
  for (auto [coordinate, offset] : llvm::zip_equal(sum, start))
    coordinate += offset;
  return sum;
}

static Tensor dynamicSlice(ir::DynamicSliceOp op, Operands x) {
  Tensor result(typeOf(op.getResult()));
  Shape start = windowStart(x[1], x[0].shape(), result.shape());
  forEachIndex(result.shape(), [&](ArrayRef<int64_t> index) {
    result.elements[positionOf(index, result.shape())] =
        x[0].elements[positionOf(shifted(index, start), x[0].shape())];
  });
  return result;
}

static Tensor dynamicUpdateSlice(ir::DynamicUpdateSliceOp op, Operands x) {
  Tensor result = x[0];
  Shape start = windowStart(x[2], x[0].shape(), x[1].shape());
  forEachIndex(x[1].shape(), [&](ArrayRef<int64_t> index) {
    result.elements[positionOf(shifted(index, start), result.shape())] =
        x[1].elements[positionOf(index, x[1].shape())];
  });
  return result;
}

void addIndexedOps(OpTable &table) {
  table.add<ir::GatherOp>(gather);
  table.add<ir::ScatterAddOp>(scatterAdd);
  table.add<ir::DynamicSliceOp>(dynamicSlice);
  table.add<ir::DynamicUpdateSliceOp>(dynamicUpdateSlice);
}

} // namespace gpuc::reference
