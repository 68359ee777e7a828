//===- ShapeOps.cpp - Ops that move elements and compute none ---------------===//

#include "frontend/onnx/Folding.h"
#include "frontend/onnx/Importer.h"
#include "frontend/onnx/ops/OpTable.h"

#include <algorithm>
#include <numeric>

namespace gpuc::onnx {
namespace {

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// The shape that Reshape asks for, with 0 and -1 replaced; none after an error.
std::optional<Shape> resolveShape(NodeScope &node, const Shape &from, Shape to, bool batchAsked) {
  const bool hasBatch = !from.empty() && from[0] == kBatch, keepZeros = node.integer("allowzero", 0);
  auto misfit = [&]() -> std::optional<Shape> {
    return node.fail(
        "shape " + toString(from) + " cannot become " + toString(to) +
        (hasBatch ? ": the batch stays first and by itself; --dim NAME=N makes it a number" : ""));
  };
  int64_t rest = 1, open = -1;
  for (size_t i = 0; i < to.size(); ++i) {
    int64_t &extent = to[i];
    if (batchAsked && extent == kBatch && (i > 0 || !hasBatch))
      return misfit();
    if (extent == 0 && !keepZeros) {
      if (i >= from.size())
        return misfit();
      extent = from[i];
    }
    if (extent == -1 && open >= 0)
      return misfit();
    if (extent == -1)
      open = static_cast<int64_t>(i);
    else if (extent != kBatch && (extent < 0 || __builtin_mul_overflow(rest, extent, &rest)))
      return misfit();
  }
  if (open < 0)
    return to;
  int64_t count = countOf(from, hasBatch, from.size());
  const bool batchPlaced = !to.empty() && to[0] == kBatch;
  if (hasBatch && !batchPlaced) {
    if (open != 0 || rest != count)
      return misfit();
    to[0] = kBatch;
    return to;
  }
  if (rest == 0 || count % rest != 0)
    return misfit();
  to[open] = count / rest;
  return to;
}

/// The shape without the dimensions `axes`, or without all of extent 1; none after an error.
std::optional<Shape> squeezedShape(NodeScope &node, const Shape &shape, const std::optional<Shape> &axes) {
  std::vector<bool> dropped(shape.size());
  for (size_t dim = 0; dim < shape.size(); ++dim)
    dropped[dim] = !axes && shape[dim] == 1;
  for (int64_t axis : axes.value_or(Shape())) {
    int64_t dim = dimension(node.input(0), axis);
    if (dim < 0)
      return std::nullopt;
    if (shape[dim] != 1)
      return node.fail("axis " + std::to_string(axis) + " of shape " + toString(shape) + " has not extent 1");
    dropped[dim] = true;
  }
  Shape kept;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (!dropped[dim])
      kept.push_back(shape[dim]);
  return kept;
}

void lowerView(NodeScope &node) {
  if (std::optional<Shape> shape = viewShape(node))
    node.output(reshape(node.input(0), *shape));
}

void lowerFlatten(NodeScope &node) {
  Tensor x = node.input(0);
  int64_t axis = node.integer("axis", 1), rank = x.rank();
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis > rank)
    return void(node.fail("axis " + std::to_string(axis) + " of shape " + toString(x.shape())));
  Shape shape = x.shape();
  const bool hasBatch = x.hasBatch();
  if (hasBatch && axis != 1)
    return void(
        node.fail("Flatten would merge the batch with other dimensions; --dim NAME=N makes it a number"));
  node.output(reshape(x, {hasBatch ? kBatch : countOf(shape, 0, axis), countOf(shape, axis, rank)}));
}

void lowerTranspose(NodeScope &node) {
  Tensor x = node.input(0);
  Shape reversed(x.rank());
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  Shape permutation = node.integers("perm", reversed);
  if (x.hasBatch() && !permutation.empty() && permutation.front() != 0)
    return void(node.fail("moves the batch, which is open: bind it with --dim NAME=N"));
  node.output(transpose(x, permutation));
}

/// Extents of known numbers; an open batch is said to be the least i64.
void lowerShape(NodeScope &node) {
  Shape shape = node.shapeOf(0);
  int64_t rank = static_cast<int64_t>(shape.size());
  auto bound = [rank](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = bound(node.integer("start", 0)), end = bound(node.integer("end", rank));
  Shape part(shape.begin() + start, shape.begin() + std::max(start, end));
  auto tensor =
      std::make_shared<HostTensor>(*fromIntegers(DataType::i64, {static_cast<int64_t>(part.size())}, part));
  tensor->symbolic = std::count(part.begin(), part.end(), kBatch) > 0;
  node.output(HostTensorPtr(tensor));
}

void lowerSize(NodeScope &node) {
  Shape shape = node.shapeOf(0);
  if (std::count(shape.begin(), shape.end(), kBatch))
    return void(
        node.fail("the number of elements depends on the batch, which is open: bind it with --dim NAME=N"));
  node.output(fromIntegers(DataType::i64, {}, {countOf(shape, 0, shape.size())}));
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

void lowerConcat(NodeScope &node) {
  std::vector<Tensor> parts = node.allInputs();
  if (parts.empty())
    return void(node.fail("has no input"));
  int64_t dim = dimension(parts.front(), node.integer("axis", 0));
  if (dim >= 0)
    node.output(concat(parts, dim));
}

void lowerSplit(NodeScope &node) {
  Tensor x = node.input(0);
  int64_t dim = dimension(x, node.integer("axis", 0));
  std::optional<Shape> sizes = node.attributeOrInput("split", 1);
  if (dim < 0 || node.failed())
    return;
  const int64_t extent = x.extent(dim), parts = node.outputs.size();
  if (!sizes) { // Equal parts, the last one smaller if need be.
    int64_t part = (extent + parts - 1) / std::max<int64_t>(parts, 1);
    sizes.emplace(parts, part);
    sizes->back() = extent - part * (parts - 1);
  }
  int64_t begin = 0;
  for (int64_t i = 0; i < std::min<int64_t>(parts, sizes->size()); ++i) {
    int64_t size = (*sizes)[i];
    if (size < 0 || begin + size > extent)
      return void(node.fail("parts " + toString(*sizes) + " of axis " + std::to_string(dim) + " of shape " +
                            toString(x.shape())));
    node.output(slice(x, dim, begin, begin + size), i);
    begin += size;
  }
}

Tensor sliceOne(const Tensor &x, const DimSlice &given) {
  const int64_t dim = given.dim, extent = x.extent(dim);
  if (extent == kBatch)
    return given.start == 0 && given.end >= INT32_MAX && given.step == 1
               ? x
               : x.emitter()->fail("a slice of the batch, which is open: bind it with --dim NAME=N");
  const auto [_, start, end, step] = within(given, extent);
  if (step > 0)
    return slice(x, dim, start, end, step);
  // Backwards, element i stands at extent - 1 - i.
  return slice(reverse(x, {dim}), dim, extent - 1 - start, extent - 1 - end, -step);
}

void lowerSlice(NodeScope &node) {
  std::optional<std::vector<DimSlice>> slices = readSlices(node);
  Tensor x = node.input(0);
  if (!slices)
    return;
  for (DimSlice &slice : *slices) {
    slice.dim = dimension(x, slice.dim);
    if (slice.dim < 0)
      return;
    if (slice.step == 0)
      return void(node.fail("a step of 0"));
    x = sliceOne(x, slice);
  }
  node.output(x);
}

//===----------------------------------------------------------------------===//
// Repetition
//===----------------------------------------------------------------------===//

void lowerExpand(NodeScope &node) {
  HostTensorPtr asked = node.require(1, "shape");
  if (!asked)
    return;
  Tensor x = node.input(0);
  if (std::optional<Shape> shape = broadcastShapes(node.emitter, x.shape(), integersOf(*asked)))
    node.output(broadcastTo(x, *shape));
}

void lowerTile(NodeScope &node) {
  Tensor x = node.input(0);
  std::optional<Shape> repeats = node.requireIntegers(1, "repeats");
  if (!repeats || !x)
    return;
  if (static_cast<int64_t>(repeats->size()) != x.rank())
    return void(node.fail("repeats has not one entry for each dimension of " + toString(x.shape())));
  // Each repeated dimension becomes two: how often, and what.
  Shape unit, spread, result;
  for (size_t i = 0; i < repeats->size(); ++i) {
    int64_t times = (*repeats)[i], extent = x.extent(i);
    if (times < 0 || (extent == kBatch && times != 1))
      return void(node.fail("repeats " + toString(*repeats) + " of shape " + toString(x.shape())));
    if (times != 1)
      unit.push_back(1), spread.push_back(times);
    unit.push_back(extent), spread.push_back(extent);
    result.push_back(extent == kBatch ? kBatch : times * extent);
  }
  node.output(reshape(broadcastTo(reshape(x, unit), spread), result));
}

//===----------------------------------------------------------------------===//
// Blocks, triangles, unit matrices
//===----------------------------------------------------------------------===//

void lowerDepthToSpace(NodeScope &node) {
  Tensor x = node.input(0);
  int64_t block = node.integer("blocksize", 1);
  std::string mode = node.text("mode", "DCR");
  Shape s = x.shape();
  if (s.size() != 4 || block < 1 || block > INT32_MAX || s[1] % (block * block) != 0)
    return void(node.fail("blocks of " + std::to_string(block) + " of shape " + toString(s)));
  const int64_t depth = s[1] / (block * block);
  Tensor parts = mode == "CRD"
                     ? transpose(reshape(x, {s[0], depth, block, block, s[2], s[3]}), {0, 1, 4, 2, 5, 3})
                     : transpose(reshape(x, {s[0], block, block, depth, s[2], s[3]}), {0, 3, 4, 1, 5, 2});
  node.output(reshape(parts, {s[0], depth, s[2] * block, s[3] * block}));
}

void lowerSpaceToDepth(NodeScope &node) {
  Tensor x = node.input(0);
  int64_t block = node.integer("blocksize", 1);
  Shape s = x.shape();
  if (s.size() != 4 || block < 1 || block > INT32_MAX || s[2] % block != 0 || s[3] % block != 0)
    return void(node.fail("blocks of " + std::to_string(block) + " of shape " + toString(s)));
  Tensor parts = reshape(x, {s[0], s[1], s[2] / block, block, s[3] / block, block});
  node.output(reshape(transpose(parts, {0, 3, 5, 1, 2, 4}),
                      {s[0], s[1] * block * block, s[2] / block, s[3] / block}));
}

void lowerTrilu(NodeScope &node) {
  Tensor x = node.input(0);
  int64_t diagonal = 0;
  if (node.has(1)) {
    std::optional<Shape> k = node.requireIntegers(1, "k");
    if (!k || k->size() != 1)
      return;
    diagonal = k->front();
  }
  if (x.rank() < 2)
    return void(node.fail("a triangle of shape " + toString(x.shape())));
  Tensor row = iota(node.emitter, x.shape(), DataType::i64, x.rank() - 2) + static_cast<double>(diagonal);
  Tensor column = iota(node.emitter, x.shape(), DataType::i64, x.rank() - 1);
  node.output(select(compare(node.integer("upper", 1) ? "ge" : "le", column, row), x, like(x, 0)));
}

void lowerEyeLike(NodeScope &node) {
  Shape shape = node.shapeOf(0);
  std::optional<DataType> type = node.hasAttribute("dtype") ? castTarget(node) : node.typeOf(0);
  if (!type || shape.size() != 2)
    return void(node.fail("a unit matrix of shape " + toString(shape)));
  Tensor row = iota(node.emitter, shape, DataType::i64, 0) + static_cast<double>(node.integer("k", 0));
  node.output(cast(compare("eq", iota(node.emitter, shape, DataType::i64, 1), row), *type));
}

void lowerConstant(NodeScope &node) {
  if (node.node.attributes.size() != 1)
    return void(node.fail("a Constant has one attribute"));
  const NodeAttribute &value = node.node.attributes.front();
  if (HostTensorPtr tensor = tensorOf(value))
    node.output(tensor);
  else
    node.fail("attribute '" + value.name + "' is no number or tensor");
}

void lowerConstantOfShape(NodeScope &node) {
  HostTensorPtr asked = node.require(0, "shape");
  if (!asked)
    return;
  const NodeAttribute *attribute = node.node.find("value");
  HostTensorPtr value = attribute ? attribute->tensor() : nullptr;
  if (attribute && (!value || !value->supported || value->spec.elementCount() != 1))
    return void(node.fail("attribute 'value' is not one number of a type that gpuc has"));
  Shape shape = integersOf(*asked);
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool isBatch = asked->symbolic && shape[i] == kBatch;
    if (isBatch && i > 0)
      return void(
          node.fail("shape " + toString(shape) +
                    " has the batch, which is open, behind another dimension: bind it with --dim NAME=N"));
    if (shape[i] < 0 && !isBatch)
      return void(node.fail("shape " + toString(shape) + " has a negative extent"));
  }
  node.output(value ? node.emitter.constant(shape, *value) : node.emitter.constant(shape, DataType::f32, 0));
}

void lowerRange(NodeScope &node) {
  // What is known was folded.
  node.require(0, "start") && node.require(1, "limit") && node.require(2, "delta");
  if (!node.failed())
    node.fail("a range of too many elements");
}

/// Only the branch that is taken is imported; the condition must be known.
void lowerIf(NodeScope &node) {
  std::optional<double> condition = node.requireNumber(0, "condition");
  const NodeAttribute *branch =
      condition ? node.node.find(*condition ? "then_branch" : "else_branch") : nullptr;
  if (!condition)
    return;
  if (!branch || !branch->graph())
    return void(node.fail("has no such branch"));
  std::vector<Operand> results = node.importer().runBranch(*branch->graph());
  for (size_t i = 0; i < results.size() && i < node.outputs.size(); ++i)
    node.outputs[i] = results[i];
}

/// on at the index's place along `axis`, off elsewhere.
void lowerOneHot(NodeScope &node) {
  std::optional<double> depth = node.requireNumber(1, "depth");
  Tensor indices = node.input(0), values = node.input(2);
  if (!depth || !indices || !values)
    return;
  int64_t axis = node.integer("axis", -1), count = static_cast<int64_t>(*depth);
  axis = axis < 0 ? axis + indices.rank() + 1 : axis;
  if (axis < 0 || axis > indices.rank() || count < 0 || values.shape() != Shape{2})
    return void(node.fail("axis, depth or values do not suit indices of shape " + toString(indices.shape())));
  Shape shape = indices.shape();
  shape.insert(shape.begin() + axis, count);
  Tensor index = cast(indices, DataType::i64);
  index = unsqueeze(select(compare("lt", index, 0), index + static_cast<double>(count), index), {axis});
  Tensor hit = compare("eq", iota(node.emitter, shape, DataType::i64, axis), index);
  auto value = [&](int64_t i) { return reshape(slice(values, 0, i, i + 1), {}); };
  node.output(select(hit, value(1), value(0)));
}

} // namespace

std::optional<Shape> viewShape(NodeScope &node) {
  const Shape shape = node.shapeOf(0);
  if (node.node.op == "Reshape") {
    HostTensorPtr asked = node.require(1, "shape");
    return asked ? resolveShape(node, shape, integersOf(*asked), asked->symbolic) : std::nullopt;
  }
  std::optional<Shape> axes = node.attributeOrInput("axes", 1);
  if (node.node.op == "Unsqueeze" && !axes)
    node.fail("needs axes");
  if (node.failed())
    return std::nullopt;
  return node.node.op == "Unsqueeze" ? unsqueeze(node.emitter, shape, *axes)
                                     : squeezedShape(node, shape, axes);
}

std::optional<std::vector<DimSlice>> readSlices(NodeScope &node) {
  std::optional<Shape> starts = node.requireIntegers(1, "starts"), ends = node.requireIntegers(2, "ends");
  Shape axes = dimsFrom(0, starts ? static_cast<int64_t>(starts->size()) : 0), steps(axes.size(), 1);
  if (node.has(3))
    axes = node.requireIntegers(3, "axes").value_or(Shape());
  if (node.has(4))
    steps = node.requireIntegers(4, "steps").value_or(Shape());
  if (!node.failed() &&
      (ends->size() != starts->size() || axes.size() != starts->size() || steps.size() != starts->size()))
    node.fail("starts, ends, axes and steps are not equally many");
  if (node.failed())
    return std::nullopt;
  std::vector<DimSlice> slices;
  for (size_t i = 0; i < axes.size(); ++i)
    slices.push_back({axes[i], (*starts)[i], (*ends)[i], steps[i]});
  return slices;
}

DimSlice within(DimSlice slice, int64_t extent) {
  auto wrapped = [extent](int64_t at) { return at < 0 ? (at < -extent ? -1 : at + extent) : at; };
  const int64_t longest = std::max<int64_t>(extent, 1);
  if (slice.step > 0) {
    slice.start = std::clamp<int64_t>(wrapped(slice.start), 0, extent);
    slice.end = std::clamp<int64_t>(wrapped(slice.end), slice.start, extent);
  } else {
    slice.start = std::clamp<int64_t>(wrapped(slice.start), -1, extent - 1);
    slice.end = std::clamp<int64_t>(wrapped(slice.end), -1, slice.start);
  }
  slice.step = std::clamp(slice.step, -longest, longest);
  return slice;
}

void addShapeOps(OpTable &table) {
  table["Reshape"] = {lowerView, {"allowzero"}};
  table["Flatten"] = {lowerFlatten, {"axis"}};
  table["Squeeze"] = {lowerView, {"axes"}};
  table["Unsqueeze"] = {lowerView, {"axes"}};
  table["Transpose"] = {lowerTranspose, {"perm"}};
  table["Shape"] = {lowerShape, {"start", "end"}};
  table["Size"] = {lowerSize, {}};
  table["Concat"] = {lowerConcat, {"axis"}};
  table["Split"] = {lowerSplit, {"axis", "split", "num_outputs"}};
  table["Slice"] = {lowerSlice, {}};
  table["Expand"] = {lowerExpand, {}};
  table["Tile"] = {lowerTile, {}};
  table["DepthToSpace"] = {lowerDepthToSpace, {"blocksize", "mode"}};
  table["SpaceToDepth"] = {lowerSpaceToDepth, {"blocksize"}};
  table["Trilu"] = {lowerTrilu, {"upper"}};
  table["EyeLike"] = {lowerEyeLike, {"dtype", "k"}};
  table["Constant"] = {lowerConstant,
                       {"value", "value_float", "value_floats", "value_int", "value_ints", "value_string",
                        "value_strings", "sparse_value"}};
  table["ConstantOfShape"] = {lowerConstantOfShape, {"value"}};
  table["Range"] = {lowerRange, {}};
  table["OneHot"] = {lowerOneHot, {"axis"}};
  table["If"] = {lowerIf, {"then_branch", "else_branch"}};
}

} // namespace gpuc::onnx
