//===- Fold.cpp - Ops on what is known while importing ----------------------===//
//
// How exporters compute shapes: Shape, Gather, Concat, Slice, arithmetic on small integers. All inputs are
// known here. Only what is small is computed; a large constant is left to the machine. Arithmetic on floating
// point is done in f64 and rounded once, which is right for f32 in + - · / and square root.
//
//===----------------------------------------------------------------------===//

#include "frontend/onnx/Folding.h"
#include "frontend/onnx/ops/OpTable.h"

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

/// Integers wrap around.
template <typename Operation> int64_t wrapped(int64_t a, int64_t b) {
  return static_cast<int64_t>(Operation()(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}
constexpr IntegerOperation kAdd = wrapped<std::plus<>>, kSubtract = wrapped<std::minus<>>,
                           kMultiply = wrapped<std::multiplies<>>;

int64_t divide(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? kSubtract(0, a) : a / b; }
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
      {"Add", {kAdd, [](double a, double b) { return a + b; }}},
      {"Sub", {kSubtract, [](double a, double b) { return a - b; }}},
      {"Mul", {kMultiply, [](double a, double b) { return a * b; }}},
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

HostTensorPtr foldBinary(NodeScope &node) {
  const Binary &op = *binaryNamed(node.node.op);
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
      integer = kSubtract(0, integer);
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
  IntegerOperation with = op == "ReduceSum"    ? kAdd
                          : op == "ReduceProd" ? kMultiply
                          : op == "ReduceMin"  ? binaryNamed("Min")->onIntegers
                                               : binaryNamed("Max")->onIntegers;
  if (numbers.empty() && with != kAdd && with != kMultiply)
    return nullptr;
  int64_t result = with == kAdd ? 0 : with == kMultiply ? 1 : numbers[0];
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

HostTensorPtr foldIdentity(NodeScope &node) { return node.known(0); }

struct Folder {
  HostTensorPtr (*fold)(NodeScope &node);
  size_t inputs = 1;      ///< That it cannot do without.
  bool movesOnly = false; ///< It carries the batch's extent, which is no number, from place to place.
};

/// Null: the op is left to the machine.
const Folder *folderOf(const std::string &op) {
  static const std::map<std::string, Folder> table = {
      {"Cast", {foldCast}},
      {"CastLike", {foldCast, 2}},
      {"Where", {foldWhere, 3, true}},
      {"Gather", {foldGather, 2, true}},
      {"Concat", {foldConcat, 1, true}},
      {"Slice", {foldSlice, 3, true}},
      {"Transpose", {foldTranspose}},
      {"Expand", {foldExpand, 2}},
      {"Identity", {foldIdentity, 1, true}},
      {"Reshape", {foldView, 2, true}},
      {"Squeeze", {foldView, 1, true}},
      {"Unsqueeze", {foldView, 1, true}},
      {"Range", {foldRange, 3}},
      {"ConstantOfShape", {foldConstantOfShape}},
      {"NonZero", {foldNonZero}},
  };
  static const Folder binary = {foldBinary}, unary = {foldUnary}, reduction = {foldReduce};
  static const std::set<std::string> unaries = {"Neg", "Abs", "Floor", "Ceil", "Sqrt", "Reciprocal", "Not"};
  static const std::set<std::string> reductions = {"ReduceSum", "ReduceProd", "ReduceMin", "ReduceMax"};
  if (auto found = table.find(op); found != table.end())
    return &found->second;
  return binaryNamed(op) ? &binary : unaries.count(op) ? &unary : reductions.count(op) ? &reduction : nullptr;
}

/// Whether the first `needed` inputs, and all that are not optional behind them, are there.
bool isComplete(NodeScope &node, size_t needed) {
  bool optionalBetween = node.node.op == "Slice"; // Its axes may be left out, and steps given.
  for (size_t i = 0; i < std::max(needed, node.inputCount()); ++i)
    if (!node.has(i) && !(optionalBetween && i >= needed))
      return false;
  return true;
}

} // namespace

bool fold(NodeScope &node) {
  const std::string &op = node.node.op;
  const Folder *folder = folderOf(op);
  if (!folder || node.outputs.size() != 1 || node.inputCount() == 0 || !isComplete(node, folder->inputs))
    return false;
  bool symbolic = false;
  for (size_t i = 0; i < node.inputCount(); ++i) {
    if (!node.has(i))
      continue;
    if (op == "CastLike" && i == 1)
      continue; // Only its type counts.
    HostTensorPtr known = node.known(i);
    if (!known || !known->supported || known->spec.elementCount() > kMostFoldedElements)
      return false;
    symbolic |= known->symbolic;
  }
  HostTensorPtr result;
  if (symbolic && op == "Cast" && castTarget(node) == DataType::i64)
    result = node.known(0);
  else if (!symbolic || folder->movesOnly)
    result = folder->fold(node);
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
