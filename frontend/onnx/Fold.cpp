//===- Fold.cpp - Ops on what is known while importing ----------------------===//
//
// How exporters compute shapes: Shape, Gather, Concat, Slice, arithmetic on small integers. All inputs are
// known here. Only what is small is computed; a large constant is left to the machine. Arithmetic on floating
// point is done in f64 and rounded once, which is right for f32 in + - · / and square root.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/OpTable.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace gpuc::onnx {
namespace {

constexpr int64_t kMostFoldedElements = 1 << 16;

int64_t countOf(const Shape &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count))
      return INT64_MAX;
  return count;
}

Shape stridesOf(const Shape &shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// For each element of `shape` in row-major order: origin + Σ index_d · strides[d].
Shape walk(const Shape &shape, const Shape &strides, int64_t origin = 0) {
  Shape sources(countOf(shape));
  Shape index(shape.size(), 0);
  for (int64_t &source : sources) {
    source = origin;
    for (size_t d = shape.size(); d-- > 0;) {
      origin += strides[d];
      if (++index[d] < shape[d])
        break;
      origin -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return sources;
}

/// The shape that both broadcast to; none if they do not, which the lowering then reports.
std::optional<Shape> common(const Shape &lhs, const Shape &rhs) {
  Shape out(std::max(lhs.size(), rhs.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t a = i < lhs.size() ? lhs[lhs.size() - 1 - i] : 1,
            b = i < rhs.size() ? rhs[rhs.size() - 1 - i] : 1;
    if (a != b && a != 1 && b != 1)
      return std::nullopt;
    out[out.size() - 1 - i] = a == 1 ? b : a;
  }
  return countOf(out) <= kMostFoldedElements ? std::optional(out) : std::nullopt;
}

HostTensorPtr broadcast(const HostTensorPtr &tensor, const Shape &shape) {
  if (tensor->spec.shape == shape)
    return tensor;
  const Shape &from = tensor->spec.shape;
  Shape own = stridesOf(from), strides(shape.size(), 0);
  for (size_t i = 0; i < from.size(); ++i)
    strides[shape.size() - from.size() + i] = from[i] == 1 ? 0 : own[i];
  return pick(*tensor, shape, walk(shape, strides));
}

int64_t wrapDim(int64_t dim, size_t rank) { return dim < 0 ? dim + static_cast<int64_t>(rank) : dim; }

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

using IntegerOperation = int64_t (*)(int64_t, int64_t);
using NumberOperation = double (*)(double, double);

int64_t wrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapSub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t wrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t divide(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? wrapSub(0, a) : a / b; }
int64_t floorMod(int64_t a, int64_t b) {
  if (b == 0 || b == -1)
    return 0;
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

struct Binary {
  IntegerOperation onIntegers;
  NumberOperation onNumbers; ///< Null: not folded.
  bool toBool = false;
};

const Binary *binaryNamed(const std::string &op) {
  static const std::map<std::string, Binary> table = {
      {"Add", {wrapAdd, [](double a, double b) { return a + b; }}},
      {"Sub", {wrapSub, [](double a, double b) { return a - b; }}},
      {"Mul", {wrapMul, [](double a, double b) { return a * b; }}},
      {"Div", {divide, [](double a, double b) { return a / b; }}},
      {"Mod", {floorMod, nullptr}},
      {"Min", {[](int64_t a, int64_t b) { return std::min(a, b); }, nullptr}},
      {"Max", {[](int64_t a, int64_t b) { return std::max(a, b); }, nullptr}},
      {"And", {[](int64_t a, int64_t b) { return a & b; }, nullptr}},
      {"Or", {[](int64_t a, int64_t b) { return a | b; }, nullptr}},
      {"Xor", {[](int64_t a, int64_t b) { return a ^ b; }, nullptr}},
      {"Equal",
       {[](int64_t a, int64_t b) -> int64_t { return a == b; },
        [](double a, double b) -> double { return a == b; }, true}},
      {"Less",
       {[](int64_t a, int64_t b) -> int64_t { return a < b; },
        [](double a, double b) -> double { return a < b; }, true}},
      {"LessOrEqual",
       {[](int64_t a, int64_t b) -> int64_t { return a <= b; },
        [](double a, double b) -> double { return a <= b; }, true}},
      {"Greater",
       {[](int64_t a, int64_t b) -> int64_t { return a > b; },
        [](double a, double b) -> double { return a > b; }, true}},
      {"GreaterOrEqual",
       {[](int64_t a, int64_t b) -> int64_t { return a >= b; },
        [](double a, double b) -> double { return a >= b; }, true}},
  };
  auto found = table.find(op);
  return found == table.end() ? nullptr : &found->second;
}

HostTensorPtr foldBinary(NodeScope &node, const Binary &op) {
  if (node.inputCount() != 2 || node.typeOf(0) != node.typeOf(1) || node.integer("fmod", 0) != 0)
    return nullptr;
  std::optional<Shape> shape = common(node.shapeOf(0), node.shapeOf(1));
  if (!shape)
    return nullptr;
  HostTensorPtr a = broadcast(node.known(0), *shape), b = broadcast(node.known(1), *shape);
  DataType type = a->spec.type, result = op.toBool ? DataType::i1 : type;
  if (isFloat(type)) {
    if (!op.onNumbers)
      return nullptr;
    std::vector<double> x = numbersOf(*a), y = numbersOf(*b);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = op.onNumbers(x[i], y[i]);
    return fromNumbers(result, *shape, x);
  }
  Shape x = integersOf(*a), y = integersOf(*b);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = op.onIntegers(x[i], y[i]);
  return fromIntegers(result, *shape, x);
}

HostTensorPtr foldUnary(NodeScope &node) {
  static const std::map<std::string, double (*)(double)> onNumbers = {
      {"Neg", [](double x) { return -x; }},
      {"Abs", [](double x) { return std::fabs(x); }},
      {"Floor", std::floor},
      {"Ceil", std::ceil},
      {"Sqrt", std::sqrt},
      {"Reciprocal", [](double x) { return 1 / x; }}};
  HostTensorPtr x = node.known(0);
  const DataType type = x->spec.type;
  auto found = onNumbers.find(node.node.op);
  if (found != onNumbers.end() && isFloat(type)) {
    std::vector<double> numbers = numbersOf(*x);
    std::transform(numbers.begin(), numbers.end(), numbers.begin(), found->second);
    return fromNumbers(type, x->spec.shape, numbers);
  }
  Shape integers = integersOf(*x);
  for (int64_t &integer : integers) {
    if (node.node.op == "Neg" || (node.node.op == "Abs" && integer < 0))
      integer = wrapSub(0, integer);
    else if (node.node.op == "Not")
      integer = !integer;
    else if (node.node.op != "Abs")
      return nullptr;
  }
  return isFloat(type) ? nullptr : fromIntegers(type, x->spec.shape, integers);
}

HostTensorPtr foldCast(NodeScope &node) {
  HostTensorPtr x = node.known(0);
  std::optional<DataType> type = castTarget(node);
  if (!type || x->spec.type == *type)
    return type ? x : nullptr;
  // Saturation of what is out of range is the machine's, so that there is one rule.
  if (isFloat(x->spec.type) && !isFloat(*type) && *type != DataType::i64 && *type != DataType::i1)
    for (double number : numbersOf(*x))
      if (!(std::fabs(number) < 128))
        return nullptr;
  return isFloat(x->spec.type) ? fromNumbers(*type, x->spec.shape, numbersOf(*x))
                               : fromIntegers(*type, x->spec.shape, integersOf(*x));
}

HostTensorPtr foldWhere(NodeScope &node) {
  std::optional<Shape> shape = common(node.shapeOf(1), node.shapeOf(2));
  shape = shape ? common(*shape, node.shapeOf(0)) : shape;
  if (!shape || node.typeOf(1) != node.typeOf(2))
    return nullptr;
  Shape condition = integersOf(*broadcast(node.known(0), *shape));
  HostTensorPtr a = broadcast(node.known(1), *shape), b = broadcast(node.known(2), *shape);
  const int64_t size = sizeOf(a->spec.type);
  std::string bytes = *a->bytes;
  for (size_t i = 0; i < condition.size(); ++i)
    if (!condition[i])
      bytes.replace(i * size, size, *b->bytes, i * size, size);
  auto made = std::make_shared<HostTensor>(*a);
  made->symbolic = a->symbolic || b->symbolic;
  made->bytes = std::make_shared<const std::string>(std::move(bytes));
  return made;
}

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

HostTensorPtr foldGather(NodeScope &node) {
  HostTensorPtr x = node.known(0);
  Shape indices = integersOf(*node.known(1)), from = x->spec.shape;
  int64_t dim = wrapDim(node.integer("axis", 0), from.size());
  if (dim < 0 || dim >= static_cast<int64_t>(from.size()))
    return nullptr;
  Shape outer(from.begin(), from.begin() + dim), inner(from.begin() + dim + 1, from.end()), shape = outer;
  Shape chosen = node.shapeOf(1);
  shape.insert(shape.end(), chosen.begin(), chosen.end());
  shape.insert(shape.end(), inner.begin(), inner.end());
  if (countOf(shape) > kMostFoldedElements)
    return nullptr;
  Shape sources;
  for (int64_t o = 0; o < countOf(outer); ++o)
    for (int64_t index : indices) {
      index = wrapDim(index, from[dim]);
      if (index < 0 || index >= from[dim])
        return nullptr;
      for (int64_t i = 0; i < countOf(inner); ++i)
        sources.push_back((o * from[dim] + index) * countOf(inner) + i);
    }
  return pick(*x, shape, sources);
}

HostTensorPtr foldConcat(NodeScope &node) {
  HostTensorPtr first = node.known(0);
  int64_t dim = wrapDim(node.integer("axis", 0), first->spec.shape.size());
  // Shapes are lists; what has more dimensions is left to the machine, but for lists of rows.
  if (dim != 0 || first->spec.shape.empty())
    return nullptr;
  auto made = std::make_shared<HostTensor>(*first);
  made->symbolic = false;
  made->spec.shape[0] = 0;
  std::string bytes;
  for (size_t i = 0; i < node.inputCount(); ++i) {
    HostTensorPtr part = node.known(i);
    Shape rest = part->spec.shape, expected = made->spec.shape;
    if (part->spec.type != first->spec.type || rest.size() != expected.size() ||
        !std::equal(rest.begin() + 1, rest.end(), expected.begin() + 1))
      return nullptr;
    made->spec.shape[0] += rest[0];
    made->symbolic |= part->symbolic;
    bytes += *part->bytes;
  }
  made->bytes = std::make_shared<const std::string>(std::move(bytes));
  return made;
}

HostTensorPtr foldSlice(NodeScope &node) {
  HostTensorPtr x = node.known(0);
  Shape starts = integersOf(*node.known(1)), ends = integersOf(*node.known(2)), shape = x->spec.shape;
  Shape axes(starts.size()), steps(starts.size(), 1), strides = stridesOf(shape);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.has(3))
    axes = integersOf(*node.known(3));
  if (node.has(4))
    steps = integersOf(*node.known(4));
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return nullptr;
  int64_t origin = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t dim = wrapDim(axes[i], shape.size()), step = steps[i];
    if (dim < 0 || dim >= static_cast<int64_t>(shape.size()) || step < 1)
      return nullptr;
    auto bound = [extent = shape[dim]](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? (at < -extent ? 0 : at + extent) : at, 0, extent);
    };
    int64_t start = bound(starts[i]), end = std::max(bound(ends[i]), start);
    origin += start * strides[dim];
    step = std::min(step, std::max<int64_t>(shape[dim], 1));
    strides[dim] *= step;
    shape[dim] = (end - start + step - 1) / step;
  }
  return pick(*x, shape, walk(shape, strides, origin));
}

HostTensorPtr foldTranspose(NodeScope &node) {
  HostTensorPtr x = node.known(0);
  Shape from = x->spec.shape, permutation(from.size()), strides = stridesOf(from), shape, walked;
  std::iota(permutation.rbegin(), permutation.rend(), 0);
  permutation = node.integers("perm", permutation);
  Shape sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < from.size(); ++i)
    if (sorted.size() != from.size() || sorted[i] != static_cast<int64_t>(i))
      return nullptr;
  for (int64_t dim : permutation) {
    shape.push_back(from[dim]);
    walked.push_back(strides[dim]);
  }
  return pick(*x, shape, walk(shape, walked));
}

HostTensorPtr foldExpand(NodeScope &node) {
  if (node.known(1)->symbolic)
    return nullptr;
  std::optional<Shape> shape = common(node.shapeOf(0), integersOf(*node.known(1)));
  return shape ? broadcast(node.known(0), *shape) : nullptr;
}

/// Reshape, Squeeze, Unsqueeze, Flatten: the same bytes under another shape.
HostTensorPtr foldView(NodeScope &node) {
  HostTensorPtr x = node.known(0);
  Shape shape = x->spec.shape;
  if (node.node.op == "Reshape") {
    Shape asked = integersOf(*node.known(1));
    int64_t rest = 1, open = -1;
    for (size_t i = 0; i < asked.size(); ++i) {
      if (asked[i] == 0 && !node.integer("allowzero", 0))
        asked[i] = i < shape.size() ? shape[i] : -2;
      if (asked[i] == -1 && open < 0)
        open = static_cast<int64_t>(i);
      else if (asked[i] < 0 || __builtin_mul_overflow(rest, asked[i], &rest))
        return nullptr;
    }
    if (open >= 0 && rest > 0)
      asked[open] = countOf(shape) / rest;
    shape = asked;
  } else {
    Shape axes;
    if (node.inputCount() > 1)
      axes = integersOf(*node.known(1));
    else if (node.node.op == "Unsqueeze")
      return nullptr;
    const size_t rank = shape.size() + (node.node.op == "Unsqueeze" ? axes.size() : 0);
    for (int64_t &axis : axes)
      if ((axis = wrapDim(axis, rank)) < 0 || axis >= static_cast<int64_t>(rank))
        return nullptr;
    std::sort(axes.begin(), axes.end());
    if (node.node.op == "Unsqueeze") {
      for (int64_t axis : axes) {
        if (axis > static_cast<int64_t>(shape.size()))
          return nullptr;
        shape.insert(shape.begin() + axis, 1);
      }
    } else {
      Shape kept;
      for (size_t i = 0; i < shape.size(); ++i) {
        bool named = std::count(axes.begin(), axes.end(), static_cast<int64_t>(i)) > 0;
        if (named && shape[i] != 1)
          return nullptr;
        if (!(named || (node.inputCount() < 2 && shape[i] == 1)))
          kept.push_back(shape[i]);
      }
      shape = kept;
    }
  }
  return countOf(shape) == x->spec.elementCount() ? withShape(x, shape) : nullptr;
}

//===----------------------------------------------------------------------===//
// Makers and reductions
//===----------------------------------------------------------------------===//

HostTensorPtr foldRange(NodeScope &node) {
  const DataType type = node.typeOf(0);
  std::vector<double> bounds[3];
  for (size_t i = 0; i < 3; ++i)
    if (!node.has(i) || (bounds[i] = numbersOf(*node.known(i))).size() != 1)
      return nullptr;
  double start = bounds[0][0], limit = bounds[1][0], delta = bounds[2][0];
  double count = std::max(std::ceil((limit - start) / delta), 0.0);
  if (!(count <= kMostFoldedElements))
    return nullptr;
  std::vector<double> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = start + static_cast<double>(i) * delta;
  return fromNumbers(type, {static_cast<int64_t>(numbers.size())}, numbers);
}

HostTensorPtr foldConstantOfShape(NodeScope &node) {
  Shape shape = integersOf(*node.known(0));
  const NodeAttribute *value = node.node.find("value");
  if (countOf(shape) > kMostFoldedElements || (value && (!value->tensor || !value->tensor->supported)))
    return nullptr;
  if (!value)
    return fromNumbers(DataType::f32, shape, std::vector<double>(countOf(shape), 0.0));
  if (value->tensor->spec.elementCount() != 1)
    return nullptr;
  return pick(*value->tensor, shape, Shape(countOf(shape), 0));
}

/// Sum, product, least and greatest of a list of integers.
HostTensorPtr foldReduce(NodeScope &node) {
  HostTensorPtr x = node.known(0);
  if (isFloat(x->spec.type) || x->spec.shape.size() != 1)
    return nullptr;
  if (node.inputCount() > 1 && integersOf(*node.known(1)).empty() && node.integer("noop_with_empty_axes", 0))
    return x;
  Shape numbers = integersOf(*x);
  const std::string &op = node.node.op;
  IntegerOperation with = op == "ReduceSum"    ? wrapAdd
                          : op == "ReduceProd" ? wrapMul
                          : op == "ReduceMin"  ? binaryNamed("Min")->onIntegers
                                               : binaryNamed("Max")->onIntegers;
  if (numbers.empty() && with != wrapAdd && with != wrapMul)
    return nullptr;
  int64_t result = with == wrapAdd ? 0 : with == wrapMul ? 1 : numbers[0];
  for (int64_t number : numbers)
    result = with(result, number);
  return fromIntegers(x->spec.type, node.integer("keepdims", 1) ? Shape{1} : Shape{}, {result});
}

/// Indices of what is not zero, one row a dimension.
HostTensorPtr foldNonZero(NodeScope &node) {
  HostTensorPtr x = node.known(0);
  Shape shape = x->spec.shape, strides = stridesOf(shape), found;
  std::vector<double> numbers = numbersOf(*x);
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] != 0)
      found.push_back(static_cast<int64_t>(i));
  Shape indices;
  for (size_t d = 0; d < shape.size(); ++d)
    for (int64_t at : found)
      indices.push_back(at / strides[d] % shape[d]);
  return fromIntegers(DataType::i64, {static_cast<int64_t>(shape.size()), static_cast<int64_t>(found.size())},
                      indices);
}

const std::map<std::string, HostTensorPtr (*)(NodeScope &)> &folders() {
  static const std::map<std::string, HostTensorPtr (*)(NodeScope &)> table = {
      {"Neg", foldUnary},        {"Abs", foldUnary},
      {"Floor", foldUnary},      {"Ceil", foldUnary},
      {"Sqrt", foldUnary},       {"Reciprocal", foldUnary},
      {"Not", foldUnary},        {"Cast", foldCast},
      {"CastLike", foldCast},    {"Where", foldWhere},
      {"Gather", foldGather},    {"Concat", foldConcat},
      {"Slice", foldSlice},      {"Transpose", foldTranspose},
      {"Expand", foldExpand},    {"Reshape", foldView},
      {"Squeeze", foldView},     {"Unsqueeze", foldView},
      {"Range", foldRange},      {"ConstantOfShape", foldConstantOfShape},
      {"ReduceSum", foldReduce}, {"ReduceProd", foldReduce},
      {"ReduceMin", foldReduce}, {"ReduceMax", foldReduce},
      {"NonZero", foldNonZero}};
  return table;
}

/// Ops that carry the batch's extent, which is no number, from place to place.
bool movesOnly(const std::string &op) {
  static const std::set<std::string> ops = {"Gather",  "Concat", "Slice",     "Reshape",
                                            "Squeeze", "Where",  "Unsqueeze", "Identity"};
  return ops.count(op) > 0;
}

} // namespace

/// Whether the inputs that the op cannot do without are there.
static bool isComplete(NodeScope &node) {
  static const std::map<std::string, size_t> least = {{"Slice", 3},   {"Where", 3},  {"Range", 3},
                                                      {"Gather", 2},  {"Expand", 2}, {"Reshape", 2},
                                                      {"CastLike", 2}};
  auto found = least.find(node.node.op);
  size_t needed = found == least.end() ? 1 : found->second;
  bool optionalBetween = node.node.op == "Slice"; // Its axes may be left out, and steps given.
  for (size_t i = 0; i < std::max(needed, node.inputCount()); ++i)
    if (!node.has(i) && !(optionalBetween && i >= needed))
      return false;
  return true;
}

bool fold(NodeScope &node) {
  if (node.outputs.size() != 1 || node.inputCount() == 0 || !isComplete(node))
    return false;
  bool symbolic = false;
  for (size_t i = 0; i < node.inputCount(); ++i) {
    if (!node.has(i))
      continue;
    if (node.node.op == "CastLike" && i == 1)
      continue; // Only its type counts.
    HostTensorPtr known = node.known(i);
    if (!known || !known->supported || known->spec.elementCount() > kMostFoldedElements)
      return false;
    symbolic |= known->symbolic;
  }
  const std::string &op = node.node.op;
  HostTensorPtr result;
  if (op == "Identity")
    result = node.known(0);
  else if (symbolic && op == "Cast" && castTarget(node) == DataType::i64)
    result = node.known(0);
  else if (symbolic && !movesOnly(op))
    return false;
  else if (const Binary *binary = binaryNamed(op))
    result = foldBinary(node, *binary);
  else if (auto folder = folders().find(op); folder != folders().end())
    result = folder->second(node);
  // A picked part of a shape need not have the batch in it any more.
  if (result && result->symbolic) {
    Shape elements = integersOf(*result);
    if (std::count(elements.begin(), elements.end(), kBatch) == 0) {
      auto plain = std::make_shared<HostTensor>(*result);
      plain->symbolic = false;
      result = plain;
    }
  }
  if (!result)
    return false;
  node.output(result);
  return true;
}

} // namespace gpuc::onnx
