//===- SequenceOps.cpp - Lists of tensors -----------------------------------===//
//
// Exporters write `split` and `chunk` as a list and picks from it. How long a list is and what is picked must
// be known; a list itself is no value of gpuc, and neither input nor output of a model.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/ops/OpTable.h"

namespace gpuc::onnx {
namespace {

using Sequence = std::vector<Tensor>;

const Sequence &sequenceOf(NodeScope &node) {
  static const Sequence empty;
  if (node.has(0) && node.operand(0).sequence)
    return *node.operand(0).sequence;
  node.fail("input 0 is no sequence");
  return empty;
}

void outputSequence(NodeScope &node, Sequence sequence) {
  if (!node.failed() && !node.outputs.empty())
    node.outputs[0].sequence = std::make_shared<const Sequence>(std::move(sequence));
}

/// An index up to `last` of a sequence of `count`, from the end if it is negative; `last` if it is left out.
std::optional<int64_t> position(NodeScope &node, size_t input, int64_t count, int64_t last) {
  if (!node.has(input))
    return last;
  std::optional<double> number = node.requireNumber(input, "position");
  if (!number)
    return std::nullopt;
  int64_t at = static_cast<int64_t>(*number);
  if (at >= -count && at <= last)
    return at < 0 ? at + count : at;
  return node.fail("position " + std::to_string(at) + " of a sequence of " + std::to_string(count));
}

/// More would take longer to write down than any model needs.
constexpr int64_t kMostParts = 65536;

/// Sizes of the parts along an extent: those that are given, or equal ones of which the last may be smaller.
std::optional<Shape> partSizes(NodeScope &node, int64_t extent) {
  std::optional<Shape> split = Shape{1};
  if (node.has(1))
    split = node.requireIntegers(1, "split");
  if (!split || (node.has(1) && node.shapeOf(1).size() == 1))
    return split;
  if (split->size() != 1)
    return node.fail("split of shape " + toString(node.shapeOf(1)) + ": it is one number or a list");
  const int64_t part = split->front();
  if (part < 1 || extent == kBatch)
    return node.fail(extent == kBatch ? "splits the batch, which is open: bind it with --dim NAME=N"
                                      : "parts of " + std::to_string(part));
  if (extent / part > kMostParts)
    return node.fail(std::to_string(extent / part) + " parts; at most " + std::to_string(kMostParts));
  Shape sizes(extent / part, part);
  if (extent % part != 0)
    sizes.push_back(extent % part);
  return sizes;
}

void lowerSplitToSequence(NodeScope &node) {
  Tensor x = node.input(0);
  const int64_t dim = dimension(x, node.integer("axis", 0));
  if (dim < 0)
    return;
  std::optional<Shape> sizes = partSizes(node, x.extent(dim));
  if (!sizes)
    return;
  const bool squeezed = !node.has(1) && !node.integer("keepdims", 1);
  Shape shape = x.shape();
  shape.erase(shape.begin() + dim);
  Sequence parts;
  int64_t begin = 0;
  for (int64_t size : *sizes) {
    if (size < 0 || size > x.extent(dim) - begin)
      return void(node.fail("parts " + toString(*sizes) + " of axis " + std::to_string(dim) + " of shape " +
                            toString(x.shape())));
    Tensor part = slice(x, dim, begin, begin + size);
    parts.push_back(squeezed ? reshape(part, shape) : part);
    begin += size;
  }
  if (begin != x.extent(dim))
    return void(node.fail("parts " + toString(*sizes) + " do not make up axis " + std::to_string(dim) +
                          " of shape " + toString(x.shape())));
  outputSequence(node, std::move(parts));
}

void lowerSequenceAt(NodeScope &node) {
  const Sequence &sequence = sequenceOf(node);
  if (!node.has(1))
    return void(node.fail("input 1 (position) is missing"));
  const int64_t count = static_cast<int64_t>(sequence.size());
  if (std::optional<int64_t> at = position(node, 1, count, count - 1))
    node.output(sequence[*at]);
}

void lowerSequenceInsert(NodeScope &node) {
  Sequence sequence = sequenceOf(node);
  const int64_t count = static_cast<int64_t>(sequence.size());
  Tensor element = node.input(1);
  std::optional<int64_t> at = position(node, 2, count, count);
  if (!at || node.failed())
    return;
  sequence.insert(sequence.begin() + *at, element);
  outputSequence(node, std::move(sequence));
}

void lowerSequenceErase(NodeScope &node) {
  Sequence sequence = sequenceOf(node);
  const int64_t count = static_cast<int64_t>(sequence.size());
  std::optional<int64_t> at = position(node, 1, count, count - 1);
  if (!at || node.failed())
    return;
  if (sequence.empty())
    return void(node.fail("erases from an empty sequence"));
  sequence.erase(sequence.begin() + *at);
  outputSequence(node, std::move(sequence));
}

void lowerConcatFromSequence(NodeScope &node) {
  Sequence parts = sequenceOf(node);
  if (parts.empty() || node.failed())
    return void(node.fail("joins an empty sequence"));
  const bool stacked = node.integer("new_axis", 0);
  int64_t axis = node.integer("axis", 0);
  const int64_t rank = parts.front().rank() + stacked;
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis >= rank)
    return void(node.fail("axis " + std::to_string(axis) + " of tensors of shape " +
                          toString(parts.front().shape())));
  if (stacked)
    for (Tensor &part : parts)
      part = unsqueeze(part, {axis});
  node.output(concat(parts, axis));
}

void lowerSequenceLength(NodeScope &node) {
  const Sequence &sequence = sequenceOf(node);
  node.output(fromIntegers(DataType::i64, {}, {static_cast<int64_t>(sequence.size())}));
}

} // namespace

void addSequences(OpTable &table) {
  table["SplitToSequence"] = {lowerSplitToSequence, {"axis", "keepdims"}};
  table["SequenceConstruct"] = {[](NodeScope &n) { outputSequence(n, n.allInputs()); }, {}};
  table["SequenceEmpty"] = {[](NodeScope &n) { outputSequence(n, {}); }, {"dtype"}};
  table["SequenceAt"] = {lowerSequenceAt, {}};
  table["SequenceInsert"] = {lowerSequenceInsert, {}};
  table["SequenceErase"] = {lowerSequenceErase, {}};
  table["SequenceLength"] = {lowerSequenceLength, {}};
  table["ConcatFromSequence"] = {lowerConcatFromSequence, {"axis", "new_axis"}};
}

} // namespace gpuc::onnx
