//===- IndexingOps.cpp - What reads and writes by indices ----------------------===//

#include "frontend/onnx/Formulas.h"
#include "frontend/onnx/Writes.h"
#include "frontend/torch/OpTable.h"

#include <algorithm>

namespace gpuc::torch {
namespace {

/// The dimension that `dim` names of an operand which has some; -1 after an error.
int64_t dimOf(OpScope &op, const Tensor &x) {
  if (x && x.rank() == 0)
    op.fail("is of a tensor without dimensions");
  return x && x.rank() > 0 ? dimension(x, op.integer("dim", 0)) : -1;
}

void lowerIndexSelect(OpScope &op) {
  Tensor x = op.tensor("self"), indices = op.tensor("index");
  if (x && x.rank() == 0)
    return op.output(reshape(x, op.shape()));
  const int64_t dim = dimOf(op, x);
  if (dim < 0)
    return;
  limitRange(indices, x.extent(dim));
  op.output(reshape(onnx::gather(x, indices, dim), op.shape()));
}

/// Each element of `index` names one of x along `dim`; its other coordinates are its own.
void lowerGather(OpScope &op) {
  Tensor x = op.tensor("self"), index = op.tensor("index");
  const int64_t dim = dimOf(op, x);
  if (dim < 0 || !index)
    return;
  limitRange(index, x.extent(dim));
  Tensor flat = reshape(x, {onnx::countOf(x.shape(), 0, x.rank())});
  op.output(onnx::gather(flat, onnx::linearize(x, index, dim), 0));
}

/// Of `src` as much as there are indices.
Tensor sourceOf(OpScope &op, const Tensor &index) {
  if (op.has("value"))
    return op.emitter.constant(index.shape(), op.type(), op.number("value", 0));
  Tensor source = cast(op.tensor("src"), op.type());
  for (int64_t d = 0; source && d < source.rank(); ++d)
    source = slice(source, d, 0, index.extent(d));
  return source;
}

void lowerScatter(OpScope &op, bool adds) {
  Tensor x = op.tensor("self"), index = op.tensor("index");
  const int64_t dim = dimOf(op, x);
  if (dim < 0 || !index)
    return;
  limitRange(index, x.extent(dim));
  op.output(onnx::scatterElements(x, index, sourceOf(op, index), dim, adds));
}

//===----------------------------------------------------------------------===//
// x[i, j, …, :]
//===----------------------------------------------------------------------===//

/// x with the dimensions that are indexed made one, and where in that one the indices point to.
struct Indexed {
  Tensor x;
  Shape shape;       ///< That x has, the dimensions permuted, before they are made one.
  Shape permutation; ///< Of x's dimensions, if there is one.
  size_t first = 0, count = 0;
  Tensor flat; ///< Indices, broadcast to one shape. Empty after an error.
  bool isDistinct =
      false; ///< No two of them are the same, which is known of one of those that were made one.
};

/// Indexed dimensions that are not adjacent come first, as PyTorch has it.
Shape orderFor(const std::vector<Tensor> &indices, int64_t rank) {
  Shape front, rest;
  for (int64_t d = 0; d < rank; ++d)
    (d < static_cast<int64_t>(indices.size()) && indices[d] ? front : rest).push_back(d);
  front.insert(front.end(), rest.begin(), rest.end());
  return front;
}

bool areAdjacent(const std::vector<Tensor> &indices) {
  auto isThere = [](const Tensor &index) { return static_cast<bool>(index); };
  auto begin = std::find_if(indices.begin(), indices.end(), isThere);
  auto gap = std::find_if_not(begin, indices.end(), isThere);
  return std::none_of(gap, indices.end(), isThere);
}

/// Whether no two elements of an index are the same, once it is broadcast.
bool isDistinctIn(const Tensor &index, const Shape &joint, int64_t extent) {
  const Shape shape = index.shape();
  const int64_t count = onnx::countOf(shape, 0, shape.size());
  return count == onnx::countOf(joint, 0, joint.size()) &&
         onnx::areDistinctAlong(reshape(index, {count}), 0, extent);
}

/// `toFront`: whether indexed dimensions come first in any case.
Indexed resolve(OpScope &op, bool toFront) {
  Indexed made;
  made.x = op.tensor("self");
  std::vector<Tensor> indices = op.optionalTensors("indices");
  if (!made.x)
    return made;
  if (toFront || !areAdjacent(indices)) {
    made.permutation = orderFor(indices, made.x.rank());
    made.x = transpose(made.x, made.permutation);
    llvm::erase_if(indices, [](const Tensor &index) { return !index; });
  }
  while (made.first < indices.size() && !indices[made.first])
    ++made.first;
  while (made.first + made.count < indices.size() && indices[made.first + made.count])
    ++made.count;
  made.shape = made.x.shape();
  Shape joint;
  for (size_t i = made.first; i < made.first + made.count; ++i) {
    if (indices[i].type() == DataType::i1)
      return op.fail("takes a mask, and how many elements that is hangs on values: use torch.where"), made;
    std::optional<Shape> both = onnx::broadcastShapes(op.emitter, joint, indices[i].shape());
    if (!both)
      return made;
    joint = *both;
  }
  Tensor flat;
  for (size_t i = made.first; i < made.first + made.count; ++i) {
    Tensor index = broadcastTo(onnx::wrap(cast(indices[i], DataType::i64), made.shape[i]), joint);
    if (made.count == 1)
      limitRange(indices[i], made.shape[i]);
    flat = flat ? flat * static_cast<double>(made.shape[i]) + index : index;
    made.isDistinct |= isDistinctIn(indices[i], joint, made.shape[i]);
  }
  made.flat = flat;
  return made;
}

/// With the dimensions that are indexed made one.
Tensor merged(const Indexed &indexed) {
  const Shape &shape = indexed.shape;
  const size_t end = indexed.first + indexed.count;
  Shape one(shape.begin(), shape.begin() + indexed.first);
  one.push_back(onnx::countOf(shape, indexed.first, end));
  one.insert(one.end(), shape.begin() + end, shape.end());
  return reshape(indexed.x, one);
}

void lowerIndex(OpScope &op) {
  Indexed indexed = resolve(op, /*toFront=*/false);
  if (indexed.flat)
    op.output(onnx::gather(merged(indexed), indexed.flat, static_cast<int64_t>(indexed.first)));
}

/// A mask of x's first dimensions, and what stands where it is true, the same in each place.
void putByMask(OpScope &op, Tensor mask) {
  Tensor x = op.tensor("self"), value = op.tensor("values");
  if (!x || !value)
    return;
  const size_t behind = x.rank() - mask.rank();
  Shape each = value.shape();
  while (each.size() > behind && each.front() == 1)
    each.erase(each.begin());
  if (op.flag("accumulate", false) || each.size() > behind)
    return void(op.fail("writes by a mask another value in each place: use torch.where"));
  each.insert(each.begin(), x.rank() - each.size(), 1);
  Shape column = mask.shape();
  column.resize(x.rank(), 1);
  op.output(select(broadcastTo(reshape(mask, column), x.shape()),
                   broadcastTo(reshape(cast(value, op.type()), each), x.shape()), x));
}

void lowerIndexPut(OpScope &op) {
  std::vector<Tensor> indices = op.optionalTensors("indices");
  if (indices.size() == 1 && indices[0] && indices[0].type() == DataType::i1)
    return putByMask(op, indices[0]);
  if (!areAdjacent(indices) || (!indices.empty() && !indices.front()))
    return void(
        op.fail("writes by indices that are not those of the first dimensions: move these to the front"));
  Indexed indexed = resolve(op, /*toFront=*/true);
  Tensor values = cast(op.tensor("values"), op.type());
  if (!indexed.flat || !values)
    return;
  Shape rest(indexed.shape.begin() + indexed.count, indexed.shape.end()), spread = indexed.flat.shape();
  const int64_t rows = onnx::countOf(spread, 0, spread.size());
  spread.insert(spread.end(), rest.begin(), rest.end());
  rest.insert(rest.begin(), rows);
  Tensor x = merged(indexed), places = reshape(indexed.flat, {rows}),
         updates = reshape(broadcastTo(values, spread), rest);
  Tensor written = op.flag("accumulate", false) ? onnx::scatterAdd(x, places, updates)
                                                : onnx::scatterInto(x, places, updates, indexed.isDistinct);
  op.output(reshape(written, op.shape()));
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

void outputAll(OpScope &op, const std::vector<Tensor> &values) {
  for (size_t i = 0; i < values.size(); ++i)
    op.output(cast(values[i], op.spec(i).type), i);
}

/// Stable in any case.
void lowerSort(OpScope &op) {
  Tensor x = op.tensor("self");
  const int64_t dim = x && x.rank() > 0 ? dimension(x, op.integer("dim", -1)) : -1;
  if (dim < 0)
    return void(op.fail("is of a tensor without dimensions"));
  std::vector<mlir::NamedAttribute> attributes = {op.emitter.attribute("dim", dim)};
  if (op.flag("descending", false))
    attributes.push_back(op.emitter.flag("descending"));
  outputAll(op, op.emitter.emit("sort", {x}, attributes));
}

/// Sorted, whether that is asked for or not.
void lowerTopK(OpScope &op) {
  Tensor x = op.tensor("self");
  const int64_t dim = x && x.rank() > 0 ? dimension(x, op.integer("dim", -1)) : -1;
  if (dim < 0)
    return void(op.fail("is of a tensor without dimensions"));
  outputAll(op, onnx::topK(x, dim, op.integer("k", 1), op.flag("largest", true)));
}

} // namespace

void addIndexing(OpTable &table) {
  table["index_select.default"] = {lowerIndexSelect, {"self", "dim", "index"}};
  table["gather.default"] = {lowerGather, {"self", "dim", "index"}};
  table["index.Tensor"] = {lowerIndex, {"self", "indices"}};
  table["index_put.default"] = {lowerIndexPut, {"self", "indices", "values", "accumulate"}};
  table["scatter.src"] = {[](OpScope &op) { lowerScatter(op, false); }, {"self", "dim", "index", "src"}};
  table["scatter.value"] = {[](OpScope &op) { lowerScatter(op, false); }, {"self", "dim", "index", "value"}};
  table["scatter_add.default"] = {[](OpScope &op) { lowerScatter(op, true); },
                                  {"self", "dim", "index", "src"}};
  table["sort.default"] = {lowerSort, {"self", "dim", "descending"}};
  table["sort.stable"] = {lowerSort, {"self", "stable", "dim", "descending"}};
  table["topk.default"] = {lowerTopK, {"self", "k", "dim", "largest", "sorted"}};
}

} // namespace gpuc::torch
