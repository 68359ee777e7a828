//===- Writes.cpp - What is written by indices --------------------------------===//

#include "frontend/onnx/Writes.h"
#include "frontend/onnx/Formulas.h"

#include <algorithm>

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::onnx {
namespace {

//===----------------------------------------------------------------------===//
// Which places are named once
//===----------------------------------------------------------------------===//

/// The elements of a constant, in whatever shape; none, where it is no constant, or but one number.
Shape knownIntegers(Value value) {
  while (value && value.getDefiningOp<ReshapeOp>())
    value = value.getDefiningOp()->getOperand(0);
  auto constant = value ? value.getDefiningOp<ConstantOp>() : ConstantOp();
  auto dense = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : DenseIntElementsAttr();
  Shape known;
  if (dense)
    for (const APInt &each : dense.getValues<APInt>())
      known.push_back(each.getSExtValue());
  return known;
}

bool areAllDistinct(std::vector<Shape> places) {
  llvm::sort(places);
  return std::adjacent_find(places.begin(), places.end()) == places.end();
}

/// Behind casts and slices, which leave distinct elements distinct.
Value originOf(const Tensor &x) {
  Value value = x ? x.value() : Value();
  while (value && isa_and_nonnull<CastOp, SliceOp, StopGradientOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Whether one number fills the tensor.
bool isOneNumber(const Tensor &x) {
  Value value = x ? x.value() : Value();
  while (value && isa_and_nonnull<CastOp, ReshapeOp, BroadcastOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  auto constant = value ? value.getDefiningOp<ConstantOp>() : ConstantOp();
  return constant && constant.getSplat();
}

//===----------------------------------------------------------------------===//
// Who writes last
//===----------------------------------------------------------------------===//

/// How places are written: which are, and by which updates. No `isLast`: by each.
struct Writers {
  Tensor isWritten; ///< Of each place.
  Tensor isLast;    ///< Of each update.
};

Tensor flattened(const Tensor &x) { return reshape(x, {countOf(x.shape(), 0, x.shape().size())}); }

/// `places` [n] of `extent`. None is named twice, or it does not matter who writes.
Writers allOf(const Tensor &places, int64_t extent) {
  Emitter &e = *places.emitter();
  Tensor ones = like(cast(places, DataType::i32), 1), zeros = e.constant({extent}, DataType::i32, 0);
  return {compare("gt", scatterAdd(zeros, places, ones), 0), {}};
}

/// Of those that name one place along `dim` of `x` the last. A stable sort has them behind one another, in
/// their order; each place gets the number of the one that ends its run, and an update is the last if its own
/// is there.
Writers lastOf(const Tensor &x, const Tensor &indices, const Tensor &places, int64_t dim) {
  Emitter &e = *indices.emitter();
  Tensor at = wrap(cast(indices, DataType::i64), x.extent(dim));
  std::vector<Tensor> sorted = e.emit("sort", {at}, e.attribute("dim", dim));
  if (sorted.size() != 2)
    return {};
  const int64_t extent = at.extent(dim);
  Tensor ahead = slice(sorted[0], dim, 0, extent - 1), behind = slice(sorted[0], dim, 1, extent);
  Shape one = at.shape();
  one[dim] = 1;
  Tensor ends = concat({compare("ne", ahead, behind), e.constant(one, DataType::i1, 1)}, dim);
  Tensor its = linearize(x, sorted[0], dim), number = linearize(indices, sorted[1], dim) + 1.0;
  const Shape shape = x.shape();
  // What is negative is left out.
  Tensor last = scatterAdd(e.constant({countOf(shape, 0, shape.size())}, DataType::i64, 0),
                           flattened(select(ends, its, like(its, -1))), flattened(number));
  Tensor own = iota(e, places.shape(), DataType::i64, 0) + 1.0;
  return {compare("gt", last, 0), compare("eq", gather(last, places, 0), own)};
}

/// The updates that are added to zeros: of those that are overwritten 0, with their gradient. One that is
/// infinite has none.
Tensor counted(const Tensor &updates, const Tensor &isLast) {
  Tensor counts = broadcastTo(beside(isLast, 0, updates.rank()), updates.shape());
  if (!updates.isFloat())
    return select(counts, updates, like(updates, 0));
  Tensor none = updates - unary("stop_gradient", updates);
  return select(counts, updates, select(compare("eq", none, 0), none, like(none, 0)));
}

Tensor put(const Tensor &x, const Tensor &places, const Tensor &updates, const Writers &writers) {
  if (!writers.isWritten)
    return {};
  Tensor isWritten = broadcastTo(beside(writers.isWritten, 0, x.rank()), x.shape());
  if (isOneNumber(updates)) {
    Tensor row = reshape(slice(flattened(updates), 0, 0, 1), Shape(x.rank(), 1));
    return select(isWritten, broadcastTo(row, x.shape()), x);
  }
  Tensor added = writers.isLast ? counted(updates, writers.isLast) : updates;
  return select(isWritten, scatterAdd(like(x, 0), places, added), x);
}

} // namespace

bool areDistinct(const Tensor &indices, const Shape &shape) {
  if (indices && countOf(indices.shape(), 0, indices.rank()) == static_cast<int64_t>(shape.size()))
    return true;
  const Shape known = knownIntegers(indices ? indices.value() : Value());
  std::vector<Shape> places;
  for (size_t at = 0; at < known.size(); at += shape.size()) {
    Shape &place = places.emplace_back();
    for (size_t d = 0; d < shape.size(); ++d)
      place.push_back(known[at + d] < 0 ? known[at + d] + shape[d] : known[at + d]);
  }
  return !known.empty() && areAllDistinct(std::move(places));
}

bool areDistinctAlong(const Tensor &indices, int64_t dim, int64_t extent) {
  Value origin = originOf(indices);
  if (!origin || indices.extent(dim) == 1)
    return origin != nullptr;
  if (auto sort = origin.getDefiningOp<SortOp>())
    return origin == sort.getIndices() && static_cast<int64_t>(sort.getDim()) == dim;
  if (auto top = origin.getDefiningOp<TopKOp>())
    return origin == top.getIndices() && static_cast<int64_t>(top.getDim()) == dim;
  const Shape known = knownIntegers(indices.value()), shape = indices.shape();
  const int64_t inner = countOf(shape, dim + 1, shape.size()), line = inner * shape[dim];
  std::vector<Shape> places; // Each with those that share a line.
  for (int64_t i = 0; i < static_cast<int64_t>(known.size()); ++i)
    places.push_back({i / line, i % inner, known[i] < 0 ? known[i] + extent : known[i]});
  return !known.empty() && areAllDistinct(std::move(places));
}

Tensor scatterInto(const Tensor &x, const Tensor &indices, const Tensor &updates, bool areDistinct) {
  if (!x || !indices || !updates)
    return {};
  const bool takesAll = areDistinct || isOneNumber(updates);
  Tensor of = takesAll ? Tensor() : iota(*x.emitter(), {x.extent(0)}, DataType::i64, 0);
  return put(x, indices, updates, takesAll ? allOf(indices, x.extent(0)) : lastOf(of, indices, indices, 0));
}

Tensor scatterElements(const Tensor &x, const Tensor &indices, const Tensor &updates, int64_t dim,
                       bool adds) {
  if (!x || !indices || !updates)
    return {};
  Tensor flat = flattened(x), places = flattened(linearize(x, indices, dim)), each = flattened(updates);
  if (adds)
    return reshape(scatterAdd(flat, places, each), x.shape());
  const bool takesAll = isOneNumber(updates) || areDistinctAlong(indices, dim, x.extent(dim));
  Writers writers = takesAll ? allOf(places, flat.extent(0)) : lastOf(x, indices, places, dim);
  return reshape(put(flat, places, each, writers), x.shape());
}

} // namespace gpuc::onnx
