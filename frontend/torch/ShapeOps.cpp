//===- ShapeOps.cpp - Views, and what moves elements ---------------------------===//

#include "frontend/torch/OpTable.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace gpuc::torch {
namespace {

/// To the shape that PyTorch has found.
void lowerReshape(OpScope &op) { op.output(reshape(op.tensor("self"), op.shape())); }

void lowerExpand(OpScope &op) { op.output(broadcastTo(op.tensor("self"), op.shape())); }

void lowerBroadcast(OpScope &op) {
  const std::vector<Tensor> all = op.tensors("tensors");
  for (size_t i = 0; i < all.size() && i < op.outputs.size(); ++i)
    if (op.wants(i))
      op.output(broadcastTo(all[i], op.spec(i).shape), i);
}

void lowerPermute(OpScope &op) {
  Tensor x = op.tensor("self");
  Shape permutation = op.integers("dims", {});
  for (int64_t &dim : permutation)
    dim = dimension(x, dim);
  op.output(transpose(x, permutation));
}

void swapDims(OpScope &op, int64_t first, int64_t second) {
  Tensor x = op.tensor("self");
  first = dimension(x, first), second = dimension(x, second);
  if (first < 0 || second < 0)
    return;
  Shape permutation = onnx::dimsFrom(0, x.rank());
  std::swap(permutation[first], permutation[second]);
  op.output(transpose(x, permutation));
}

void lowerTransposed(OpScope &op) {
  if (op.tensor("self").rank() < 2)
    return op.output(op.tensor("self"));
  swapDims(op, 0, 1);
}

void lowerCat(OpScope &op) {
  std::vector<Tensor> parts;
  for (const Tensor &part : op.tensors("tensors"))
    if (part.shape() != Shape{0}) // as PyTorch has it, of old
      parts.push_back(cast(part, op.type()));
  const int64_t dim = parts.empty() ? -1 : dimension(parts.front(), op.integer("dim", 0));
  if (dim >= 0)
    op.output(parts.size() == 1 ? parts.front() : concat(parts, dim));
}

void lowerStack(OpScope &op) {
  std::vector<Tensor> parts;
  for (const Tensor &part : op.tensors("tensors"))
    parts.push_back(unsqueeze(cast(part, op.type()), {op.integer("dim", 0)}));
  const int64_t dim = parts.empty() ? -1 : dimension(parts.front(), op.integer("dim", 0));
  if (dim >= 0)
    op.output(parts.size() == 1 ? parts.front() : concat(parts, dim));
}

/// Parts one behind the other, as long as PyTorch's results are.
void lowerSplit(OpScope &op) {
  Tensor x = op.tensor("self");
  const int64_t dim = dimension(x, op.integer("dim", 0));
  if (dim < 0)
    return;
  int64_t size = op.integer(op.has("split_size") ? "split_size" : "chunks", 1);
  Shape sizes = op.integers("split_sizes", {});
  if (op.has("chunks"))
    size = size > 0 ? (x.extent(dim) + size - 1) / size : 1;
  int64_t begin = 0;
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    const int64_t end =
        std::min(begin + (sizes.empty() ? size : sizes[std::min(i, sizes.size() - 1)]), x.extent(dim));
    op.output(slice(x, dim, begin, end), i);
    begin = end;
  }
}

void lowerUnbind(OpScope &op) {
  Tensor x = op.tensor("self");
  const int64_t dim = dimension(x, op.integer("dim", 0));
  for (size_t i = 0; dim >= 0 && i < op.outputs.size(); ++i)
    if (op.wants(i))
      op.output(reshape(slice(x, dim, i, i + 1), op.spec(i).shape), i);
}

/// A bound of a slice as PyTorch takes it: from the end if negative, and not beyond it.
int64_t bound(int64_t given, int64_t extent) {
  return std::clamp<int64_t>(given < 0 ? given + extent : given, 0, extent);
}

void lowerSlice(OpScope &op) {
  Tensor x = op.tensor("self");
  const int64_t dim = dimension(x, op.integer("dim", 0));
  if (dim < 0)
    return;
  const int64_t extent = x.extent(dim);
  op.output(slice(x, dim, bound(op.integer("start", 0), extent), bound(op.integer("end", extent), extent),
                  op.integer("step", 1)));
}

void lowerSelect(OpScope &op) {
  Tensor x = op.tensor("self");
  const int64_t dim = dimension(x, op.integer("dim", 0));
  if (dim < 0)
    return;
  int64_t index = op.integer("index", 0);
  index = index < 0 ? index + x.extent(dim) : index;
  op.output(reshape(slice(x, dim, index, index + 1), op.shape()));
}

/// The last dimension first: (left, right, top, bottom, …). What is taken away is negative.
void lowerPad(OpScope &op) {
  Tensor x = op.tensor("self");
  Shape pads = op.integers("pad", {}), low(x.rank(), 0), high(x.rank(), 0);
  for (size_t i = 0; i + 1 < pads.size() && i / 2 < low.size(); i += 2) {
    const int64_t dim = x.rank() - 1 - static_cast<int64_t>(i / 2);
    x = slice(x, dim, std::max<int64_t>(-pads[i], 0), x.extent(dim) - std::max<int64_t>(-pads[i + 1], 0));
    low[dim] = std::max<int64_t>(pads[i], 0), high[dim] = std::max<int64_t>(pads[i + 1], 0);
  }
  op.output(pad(x, low, high, op.number("value", 0)));
}

void lowerRepeat(OpScope &op) {
  Tensor x = op.tensor("self");
  const Shape repeats = op.integers("repeats", {});
  Shape own = x.shape();
  own.insert(own.begin(), repeats.size() - std::min(repeats.size(), own.size()), 1);
  Shape apart, wide;
  for (size_t i = 0; i < own.size(); ++i) {
    apart.insert(apart.end(), {1, own[i]});
    wide.insert(wide.end(), {repeats[i], own[i]});
  }
  op.output(reshape(broadcastTo(reshape(x, apart), wide), op.shape()));
}

void lowerFlip(OpScope &op) {
  Tensor x = op.tensor("self");
  Shape dims = op.integers("dims", {});
  for (int64_t &dim : dims)
    dim = dimension(x, dim);
  std::ranges::sort(dims); // PyTorch takes them in any order.
  op.output(onnx::reverse(x, dims));
}

/// What lies behind the end comes in front.
void lowerRoll(OpScope &op) {
  Tensor x = op.tensor("self");
  const Shape shifts = op.integers("shifts", {}, 1), dims = op.integers("dims", {}, 1);
  if (dims.empty())
    return void(op.fail("rolls the flattened tensor: give dims"));
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = dimension(x, dims[i]);
    if (dim < 0)
      return;
    const int64_t extent = x.extent(dim), by = ((shifts[i] % extent) + extent) % extent;
    if (by != 0)
      x = onnx::concat({slice(x, dim, extent - by, extent), slice(x, dim, 0, extent - by)}, dim);
  }
  op.output(x);
}

/// x with `source` in the place of what a slice, or one index, of it shows.
void replacePart(OpScope &op, int64_t begin, int64_t end) {
  Tensor x = op.tensor("self"), source = op.tensor("src");
  const int64_t dim = dimension(x, op.integer("dim", 0));
  if (dim < 0 || !source)
    return;
  begin = bound(begin, x.extent(dim)), end = bound(end, x.extent(dim));
  Shape shape = x.shape();
  shape[dim] = end - begin;
  std::vector<Tensor> parts;
  if (begin > 0)
    parts.push_back(slice(x, dim, 0, begin));
  parts.push_back(reshape(source, shape));
  if (end < x.extent(dim))
    parts.push_back(slice(x, dim, end, x.extent(dim)));
  op.output(parts.size() == 1 ? parts.front() : concat(parts, dim));
}

void lowerSliceScatter(OpScope &op) {
  if (op.integer("step", 1) != 1)
    return void(op.fail("writes into every few elements, which is not supported: step 1"));
  replacePart(op, op.integer("start", 0), op.integer("end", std::numeric_limits<int64_t>::max()));
}

void lowerSelectScatter(OpScope &op) {
  Tensor x = op.tensor("self");
  const int64_t dim = dimension(x, op.integer("dim", 0)), index = op.integer("index", 0);
  if (dim >= 0)
    replacePart(op, index < 0 ? index + x.extent(dim) : index,
                (index < 0 ? index + x.extent(dim) : index) + 1);
}

/// What lies on one side of the diagonal, 0 elsewhere.
void lowerTriangle(OpScope &op, const char *predicate) {
  Tensor x = op.tensor("self");
  if (!x || x.rank() < 2)
    return void(op.fail("is of a tensor of fewer than two dimensions"));
  Tensor row = onnx::iota(op.emitter, x.shape(), DataType::i64, x.rank() - 2);
  Tensor column = onnx::iota(op.emitter, x.shape(), DataType::i64, x.rank() - 1);
  Tensor inside = compare(predicate, column - row, static_cast<double>(op.integer("diagonal", 0)));
  op.output(select(inside, x, like(x, 0)));
}

} // namespace

void addShapeOps(OpTable &table) {
  for (const char *name : {"view.default", "_unsafe_view.default"})
    table[name] = {lowerReshape, {"self", "size"}};
  table["reshape.default"] = {lowerReshape, {"self", "shape"}};
  table["flatten.using_ints"] = {lowerReshape, {"self", "start_dim", "end_dim"}};
  table["unflatten.int"] = {lowerReshape, {"self", "dim", "sizes"}};
  for (const char *name : {"squeeze.dim", "squeeze.dims", "unsqueeze.default"})
    table[name] = {lowerReshape, {"self", "dim"}};
  table["squeeze.default"] = {lowerReshape, {"self"}};
  table["expand.default"] = {lowerExpand, {"self", "size", "implicit"}};
  table["expand_as.default"] = {lowerExpand, {"self", "other"}};
  table["broadcast_tensors.default"] = {lowerBroadcast, {"tensors"}};
  table["permute.default"] = {lowerPermute, {"self", "dims"}};
  table["transpose.int"] = {[](OpScope &op) { swapDims(op, op.integer("dim0", 0), op.integer("dim1", 1)); },
                            {"self", "dim0", "dim1"}};
  table["t.default"] = {lowerTransposed, {"self"}};
  table["cat.default"] = {lowerCat, {"tensors", "dim"}};
  table["stack.default"] = {lowerStack, {"tensors", "dim"}};
  table["split.Tensor"] = {lowerSplit, {"self", "split_size", "dim"}};
  table["split_with_sizes.default"] = {lowerSplit, {"self", "split_sizes", "dim"}};
  table["chunk.default"] = {lowerSplit, {"self", "chunks", "dim"}};
  table["unbind.int"] = {lowerUnbind, {"self", "dim"}};
  table["slice.Tensor"] = {lowerSlice, {"self", "dim", "start", "end", "step"}};
  table["select.int"] = {lowerSelect, {"self", "dim", "index"}};
  table["constant_pad_nd.default"] = {lowerPad, {"self", "pad", "value"}};
  table["repeat.default"] = {lowerRepeat, {"self", "repeats"}};
  table["flip.default"] = {lowerFlip, {"self", "dims"}};
  table["slice_scatter.default"] = {lowerSliceScatter, {"self", "src", "dim", "start", "end", "step"}};
  table["select_scatter.default"] = {lowerSelectScatter, {"self", "src", "dim", "index"}};
  table["copy.default"] = {
      [](OpScope &op) { op.output(broadcastTo(cast(op.tensor("src"), op.type()), op.shape())); },
      {"self", "src", "non_blocking"}};
  table["tril.default"] = {[](OpScope &op) { lowerTriangle(op, "le"); }, {"self", "diagonal"}};
  table["triu.default"] = {[](OpScope &op) { lowerTriangle(op, "ge"); }, {"self", "diagonal"}};
  table["roll.default"] = {lowerRoll, {"self", "shifts", "dims"}};
}

} // namespace gpuc::torch
