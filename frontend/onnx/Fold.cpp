//===- Fold.cpp - Ops on what is known while importing ----------------------===//
//
// How exporters compute shapes: Shape, Gather, Concat, Slice, arithmetic on small integers. All inputs are
// known here. Only what is small is computed; a large constant is left to the machine. Arithmetic on floating
// point is done in f64 and rounded once, which is right for f32 in + - · / and square root.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Folding.h"
#include "frontend/onnx/OpTable.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace gpuc::onnx {
namespace {

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

template <typename Compare> Binary comparison() {
  return {[](int64_t a, int64_t b) -> int64_t { return Compare()(a, b); },
          [](double a, double b) -> double { return Compare()(a, b); }, /*toBool=*/true};
}

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
      {"Equal", comparison<std::equal_to<>>()},
      {"Less", comparison<std::less<>>()},
      {"LessOrEqual", comparison<std::less_equal<>>()},
      {"Greater", comparison<std::greater<>>()},
      {"GreaterOrEqual", comparison<std::greater_equal<>>()},
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
  const NodeAttribute *attribute = node.node.find("value");
  HostTensorPtr value =
      attribute ? attribute->tensor() : fromNumbers(DataType::f32, {}, {0.0}); // What is left out is 0.
  if (countOf(shape) > kMostFoldedElements || !value || !value->supported || value->spec.elementCount() != 1)
    return nullptr;
  return pick(*value, shape, Shape(countOf(shape), 0));
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
