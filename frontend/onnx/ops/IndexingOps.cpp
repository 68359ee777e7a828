//===- IndexingOps.cpp - Gather and scatter ---------------------------------===//
//
// gpuc gathers and scatters whole slices along one dimension. Where ONNX indexes several, or single elements,
// the operand is flattened and the indices are made linear first.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Formulas.h"
#include "frontend/onnx/Importer.h"
#include "frontend/onnx/Writes.h"
#include "frontend/onnx/ops/OpTable.h"

namespace gpuc::onnx {
namespace {

bool refuseBatch(NodeScope &node, const Tensor &x) {
  if (x.hasBatch())
    node.fail("indexes elements of a tensor with an open batch: bind it with --dim NAME=N");
  return x.hasBatch();
}

/// The index whose row PyTorch's embedding does not train; -1 if it has none, or no note says so.
int64_t notedPadding(const Node &node) {
  const std::string &note = noteOf(node.notes, kExportedNodeNote);
  const size_t begin = note.find("aten.embedding.default](args = (");
  if (begin == std::string::npos)
    return -1;
  const std::string arguments = note.substr(begin, note.find(')', begin) - begin);
  size_t table = arguments.find(','), indices = arguments.find(',', table + 1);
  return table == std::string::npos || indices == std::string::npos
             ? -1
             : std::strtoll(arguments.c_str() + indices + 1, nullptr, 10);
}

/// Whether a table has a row of zeros among others, as fresh embeddings have for their padding.
bool hasZeroRow(const HostTensor &table) {
  if (!gpuc::isFloat(table.spec.type) || table.spec.shape.size() != 2 || table.spec.elementCount() == 0)
    return false;
  const size_t row = table.bytes->size() / table.spec.shape[0];
  const std::string zeros(row, '\0');
  size_t found = 0;
  for (size_t at = 0; at < table.bytes->size(); at += row)
    found += table.bytes->compare(at, row, zeros) == 0;
  return found == 1 && table.spec.shape[0] > 1;
}

/// Rows of an embedding. That of the padding index is read, but not trained.
Tensor embed(NodeScope &node, const Tensor &table, const Tensor &indices, const Tensor &inside) {
  Tensor rows = gather(table, inside, 0);
  const int64_t padding = notedPadding(node.node);
  if (padding < 0 || padding >= table.extent(0)) {
    if (padding < 0 && node.importer().exporter() == Exporter::torchScript &&
        hasZeroRow(*node.operand(0).known))
      node.importer().say(
          "trained with a row of zeros, whose index may be PyTorch's padding_idx, which it does not "
          "train; an export with dynamo=True, optimize=False says so",
          node.operand(0).name);
    return rows;
  }
  Shape column = indices.shape();
  column.insert(column.end(), table.rank() - 1, 1);
  Tensor isPadding = reshape(compare("eq", indices, static_cast<double>(padding)), column);
  return select(broadcastTo(isPadding, rows.shape()), unary("stop_gradient", rows), rows);
}

/// An embedding: indices that are an input of the graph get the table's extent as their range, which the
/// loader checks.
void lowerGather(NodeScope &node) {
  Tensor x = node.input(0), indices = node.input(1);
  int64_t dim = dimension(x, node.integer("axis", 0));
  if (dim < 0 || !indices)
    return;
  bool ranged = node.operand(0).weight && node.importer().limitRange(node.operand(1), x.extent(dim));
  Tensor inside = ranged ? indices : wrap(indices, x.extent(dim));
  node.output(node.operand(0).weight && dim == 0 ? embed(node, x, indices, inside) : gather(x, inside, dim));
}

void lowerGatherElements(NodeScope &node) {
  Tensor x = node.input(0), indices = node.input(1);
  int64_t dim = dimension(x, node.integer("axis", 0));
  if (dim < 0 || refuseBatch(node, x))
    return;
  if (indices.rank() != x.rank())
    return void(node.fail("indices have not the rank of the data"));
  Tensor flat = reshape(x, {countOf(x.shape(), 0, x.rank())});
  node.output(gather(flat, linearize(x, indices, dim), 0));
}

/// The last dimension of `indices` holds the first indices of `shape` from dimension `from` on, as one
/// number.
Tensor linearizeTuples(const Shape &shape, const Tensor &indices, size_t from) {
  Shape rows = indices.shape();
  const int64_t last = indices.rank() - 1;
  const size_t depth = static_cast<size_t>(rows.back());
  rows.pop_back();
  Tensor linear;
  for (size_t i = 0; i < depth; ++i) {
    Tensor at = reshape(slice(cast(indices, DataType::i64), last, i, i + 1), rows);
    Tensor part = wrap(at, shape[from + i]) * static_cast<double>(countOf(shape, from + i + 1, from + depth));
    linear = i == 0 ? part : linear + part;
  }
  return linear;
}

/// Whether index tuples suit the data; says why not.
bool checkTuples(NodeScope &node, const Tensor &x, const Tensor &indices, size_t batchDims) {
  if (!x || !indices || refuseBatch(node, x) || refuseBatch(node, indices))
    return false;
  Shape tuples = indices.shape();
  if (tuples.size() > batchDims && batchDims < static_cast<size_t>(x.rank()) + 1 && tuples.back() >= 1 &&
      batchDims + tuples.back() <= static_cast<size_t>(x.rank()))
    return true;
  return node.fail("indices of shape " + toString(tuples) + " do not suit data of shape " +
                   toString(x.shape()));
}

void lowerGatherNd(NodeScope &node) {
  Tensor x = node.input(0), indices = node.input(1);
  const int64_t batchDims = node.integer("batch_dims", 0);
  if (batchDims < 0 || !checkTuples(node, x, indices, batchDims))
    return;
  Shape shape = x.shape(), result = indices.shape();
  const size_t depth = static_cast<size_t>(result.back()), rest = batchDims + depth;
  result.pop_back();
  Tensor linear = linearizeTuples(shape, indices, batchDims);
  // Rows of one batch lie within that batch.
  int64_t stride = countOf(shape, batchDims, rest);
  for (int64_t d = batchDims; d-- > 0; stride *= shape[d])
    linear = linear + iota(node.emitter, result, DataType::i64, d) * static_cast<double>(stride);
  Shape rows = {countOf(shape, 0, rest)};
  rows.insert(rows.end(), shape.begin() + rest, shape.end());
  node.output(gather(reshape(x, rows), linear, 0));
}

/// Whether updates are added; nothing after an error.
std::optional<bool> scatterAdds(NodeScope &node) {
  const std::string how = node.text("reduction", "none");
  if (how == "add" || how == "none")
    return how == "add";
  node.fail("attribute 'reduction' = '" + how + "' is not supported: none or add");
  return std::nullopt;
}

void lowerScatterElements(NodeScope &node) {
  Tensor x = node.input(0), indices = node.input(1), updates = node.input(2);
  int64_t dim = dimension(x, node.integer("axis", 0));
  if (dim < 0 || refuseBatch(node, x))
    return;
  if (indices.rank() != x.rank() || indices.shape() != updates.shape())
    return void(node.fail("indices have not the rank of the data, or not the shape of the updates"));
  if (std::optional<bool> adds = scatterAdds(node))
    node.output(scatterElements(x, indices, updates, dim, *adds));
}

void lowerScatterNd(NodeScope &node) {
  Tensor x = node.input(0), indices = node.input(1), updates = node.input(2);
  if (!checkTuples(node, x, indices, 0))
    return;
  Shape shape = x.shape(), tuples = indices.shape();
  const size_t depth = static_cast<size_t>(tuples.back());
  Shape rows = {countOf(shape, 0, depth)}, many = {countOf(tuples, 0, tuples.size() - 1)};
  rows.insert(rows.end(), shape.begin() + depth, shape.end());
  Shape slices = many;
  slices.insert(slices.end(), shape.begin() + depth, shape.end());
  Tensor linear = reshape(linearizeTuples(shape, indices, 0), many);
  std::optional<bool> adds = scatterAdds(node);
  if (!adds)
    return;
  Tensor data = reshape(x, rows), each = reshape(updates, slices);
  const bool isDistinct = areDistinct(indices, Shape(shape.begin(), shape.begin() + depth));
  node.output(
      reshape(*adds ? scatterAdd(data, linear, each) : scatterInto(data, linear, each, isDistinct), shape));
}

/// The rows that a known condition chooses.
void lowerCompress(NodeScope &node) {
  Tensor x = node.input(0);
  std::optional<Shape> condition = node.requireIntegers(1, "condition");
  if (!condition || !x)
    return;
  int64_t dim = 0;
  if (node.hasAttribute("axis"))
    dim = dimension(x, node.integer("axis", 0));
  else if (!refuseBatch(node, x))
    x = reshape(x, {countOf(x.shape(), 0, x.rank())});
  if (dim < 0 || node.failed())
    return;
  Shape chosen;
  for (size_t i = 0; i < condition->size(); ++i)
    if ((*condition)[i])
      chosen.push_back(static_cast<int64_t>(i));
  HostTensorPtr indices = fromIntegers(DataType::i64, {static_cast<int64_t>(chosen.size())}, chosen);
  node.output(gather(x, node.emitter.constant(*indices), dim));
}

/// The first lens[b] elements of each row backwards, the others as they are.
void lowerReverseSequence(NodeScope &node) {
  Tensor x = node.input(0), lengths = node.input(1);
  int64_t rows = node.integer("batch_axis", 1), time = node.integer("time_axis", 0);
  if (!x || refuseBatch(node, x))
    return;
  if (rows + time != 1 || rows * time != 0 || x.rank() < 2)
    return void(node.fail("batch_axis and time_axis are 0 and 1"));
  Shape plane = {x.extent(0), x.extent(1)};
  Tensor at = iota(node.emitter, plane, DataType::i64, time);
  Tensor length = broadcastTo(unsqueeze(cast(lengths, DataType::i64), {time}), plane);
  Tensor source = select(compare("lt", at, length), length - 1.0 - at, at);
  Tensor row = iota(node.emitter, plane, DataType::i64, rows);
  Tensor linear =
      rows == 0 ? row * static_cast<double>(plane[1]) + source : source * static_cast<double>(plane[1]) + row;
  Shape flat = x.shape();
  flat.erase(flat.begin());
  flat[0] = plane[0] * plane[1];
  node.output(gather(reshape(x, flat), linear, 0));
}

} // namespace

void addIndexing(OpTable &table) {
  table["Gather"] = {lowerGather, {"axis"}};
  table["GatherElements"] = {lowerGatherElements, {"axis"}};
  table["GatherND"] = {lowerGatherNd, {"batch_dims"}};
  table["ScatterElements"] = {lowerScatterElements, {"axis", "reduction"}};
  table["ScatterND"] = {lowerScatterNd, {"reduction"}};
  table["Compress"] = {lowerCompress, {"axis"}};
  table["ReverseSequence"] = {lowerReverseSequence, {"batch_axis", "time_axis"}};
}

} // namespace gpuc::onnx
