//===- KnownNumbers.cpp - Tensors whose elements the compiler can tell ------===//

#include "passes/rewrite/KnownNumbers.h"

#include "dialects/gpuc/TypeChecks.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace gpuc {

static double toDouble(Attribute number) {
  if (auto real = dyn_cast<FloatAttr>(number))
    return real.getValueAsDouble();
  auto integer = cast<IntegerAttr>(number);
  const bool isSigned = !integer.getType().isUnsignedInteger() && !integer.getType().isInteger(1);
  return integer.getValue().roundToDouble(isSigned);
}

static bool holds(ir::Comparison predicate, double lhs, double rhs) {
  switch (predicate) {
  case ir::Comparison::eq:
    return lhs == rhs;
  case ir::Comparison::ne:
    return lhs != rhs;
  case ir::Comparison::lt:
    return lhs < rhs;
  case ir::Comparison::le:
    return lhs <= rhs;
  case ir::Comparison::gt:
    return lhs > rhs;
  case ir::Comparison::ge:
    return lhs >= rhs;
  }
  llvm_unreachable("a comparison");
}

static int64_t countOf(ArrayRef<int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>());
}

static bool isFlags(Value value) { return getElementTypeOrSelf(value).isInteger(1); }

static bool isIndex(Value value) {
  Type element = getElementTypeOrSelf(value);
  return element.isInteger(32) || element.isInteger(64);
}

/// Neither NaN nor an integer that its type would wrap, or an f64 round.
static bool isHeld(double number, Type element) {
  if (isa<FloatType>(element))
    return !std::isnan(number);
  return std::abs(number) < std::ldexp(1.0, element.isInteger(32) ? 31 : 53);
}

bool isRounded(Value value) {
  auto cast = value.getDefiningOp<ir::CastOp>();
  return cast && isa<FloatType>(getElementTypeOrSelf(cast.getOperand())) &&
         isa<FloatType>(getElementTypeOrSelf(value));
}

std::optional<double> KnownNumbers::splatOf(Value value) {
  while (isa_and_nonnull<ir::BroadcastOp, ir::ReshapeOp>(value.getDefiningOp()) || isRounded(value))
    value = value.getDefiningOp()->getOperand(0);
  auto constant = value.getDefiningOp<ir::ConstantOp>();
  TypedAttr number = constant ? constant.getSplat() : TypedAttr();
  return number ? std::optional(toDouble(number)) : std::nullopt;
}

const std::vector<double> *KnownNumbers::of(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (!type.hasStaticShape() || ir::elementCount(type) > kMost)
    return nullptr;
  auto found = numbers_.find(value);
  if (found == numbers_.end()) {
    Numbers numbers = compute(value);
    Type element = type.getElementType();
    if (numbers && !llvm::all_of(*numbers, [=](double number) { return isHeld(number, element); }))
      numbers.reset();
    found = numbers_.try_emplace(value, std::move(numbers)).first;
  }
  return found->second.get();
}

KnownNumbers::Numbers KnownNumbers::compute(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return nullptr;
  return TypeSwitch<Operation *, Numbers>(op)
      .Case([&](ir::ConstantOp constant) { return numbersOf(constant); })
      .Case([&](ir::IotaOp iota) { return numbersOf(iota); })
      .Case([&](ir::BroadcastOp broadcast) { return repeat(broadcast); })
      .Case([&](ir::SelectOp select) { return choose(select); })
      .Case([&](ir::ReshapeOp reshape) {
        return map(reshape.getOperand(), [](double number) { return number; });
      })
      .Case([&](ir::CastOp cast) { return convert(cast); })
      .Case([&](ir::NotOp) {
        return isFlags(value) ? map(op->getOperand(0), [](double flag) { return 1 - flag; }) : nullptr;
      })
      .Case([&](ir::AndOp) {
        return isFlags(value) ? combine(op, [](double lhs, double rhs) { return lhs * rhs; }) : nullptr;
      })
      .Case([&](ir::OrOp) {
        return isFlags(value) ? combine(op, [](double lhs, double rhs) { return std::max(lhs, rhs); })
                              : nullptr;
      })
      .Case([&](ir::AddOp) { return isIndex(value) ? combine(op, std::plus<double>()) : nullptr; })
      .Case([&](ir::SubOp) { return isIndex(value) ? combine(op, std::minus<double>()) : nullptr; })
      .Case([&](ir::CompareOp compare) {
        ir::Comparison predicate = compare.getPredicate();
        return combine(op, [=](double lhs, double rhs) { return holds(predicate, lhs, rhs); });
      })
      .Default(nullptr);
}

template <typename Function> KnownNumbers::Numbers KnownNumbers::map(Value value, Function function) {
  const std::vector<double> *from = of(value);
  if (!from)
    return nullptr;
  auto numbers = std::make_unique<std::vector<double>>(*from);
  llvm::transform(*from, numbers->begin(), function);
  return numbers;
}

template <typename Function> KnownNumbers::Numbers KnownNumbers::combine(Operation *op, Function function) {
  const std::vector<double> *lhs = of(op->getOperand(0)), *rhs = of(op->getOperand(1));
  if (!lhs || !rhs)
    return nullptr;
  auto numbers = std::make_unique<std::vector<double>>(*lhs);
  for (auto [number, right] : llvm::zip_equal(*numbers, *rhs))
    number = function(number, right);
  return numbers;
}

KnownNumbers::Numbers KnownNumbers::numbersOf(ir::ConstantOp op) {
  if (TypedAttr number = op.getSplat())
    return std::make_unique<std::vector<double>>(ir::elementCount(op.getType()), toDouble(number));
  auto numbers = std::make_unique<std::vector<double>>();
  for (Attribute number : cast<DenseElementsAttr>(op.getValue()).getValues<Attribute>())
    numbers->push_back(toDouble(number));
  return numbers;
}

KnownNumbers::Numbers KnownNumbers::numbersOf(ir::IotaOp op) {
  ArrayRef<int64_t> shape = op.getType().getShape();
  const int64_t extent = shape[op.getDim()], inner = countOf(shape.drop_front(op.getDim() + 1));
  auto numbers = std::make_unique<std::vector<double>>(ir::elementCount(op.getType()));
  for (auto [i, number] : llvm::enumerate(*numbers))
    number = static_cast<double>(static_cast<int64_t>(i) / inner % extent);
  return numbers;
}

/// Each element of the result in turn, by the strides that its dimensions have in the operand.
KnownNumbers::Numbers KnownNumbers::repeat(ir::BroadcastOp op) {
  const std::vector<double> *from = of(op.getOperand());
  if (!from)
    return nullptr;
  ArrayRef<int64_t> shape = op.getType().getShape(), extents = ir::shapeOf(op.getOperand());
  SmallVector<int64_t> strides(shape.size(), 0);
  for (int64_t dim = extents.size(), stride = 1; dim-- > 0; stride *= extents[dim])
    strides[op.getDims()[dim]] = stride;
  auto numbers = std::make_unique<std::vector<double>>(ir::elementCount(op.getType()));
  for (auto [i, number] : llvm::enumerate(*numbers)) {
    int64_t rest = i, source = 0;
    for (size_t dim = shape.size(); dim-- > 0; rest /= shape[dim])
      source += rest % shape[dim] * strides[dim];
    number = (*from)[source];
  }
  return numbers;
}

KnownNumbers::Numbers KnownNumbers::choose(ir::SelectOp op) {
  const std::vector<double> *condition = of(op.getCondition()), *onTrue = of(op.getOnTrue());
  Numbers numbers =
      condition && onTrue ? map(op.getOnFalse(), [](double number) { return number; }) : nullptr;
  if (numbers)
    for (size_t i = 0; i < numbers->size(); ++i)
      if ((*condition)[i] != 0)
        (*numbers)[i] = (*onTrue)[i];
  return numbers;
}

/// To and from truth values, and between floating-point types.
KnownNumbers::Numbers KnownNumbers::convert(ir::CastOp op) {
  if (isFlags(op.getOperand()) || isFlags(op.getResult()))
    return map(op.getOperand(), [](double number) { return double(number != 0); });
  if (!isRounded(op))
    return nullptr;
  const llvm::fltSemantics &type = cast<FloatType>(op.getType().getElementType()).getFloatSemantics();
  return map(op.getOperand(), [&](double number) {
    APFloat rounded(number);
    bool losesInfo;
    rounded.convert(type, APFloat::rmNearestTiesToEven, &losesInfo);
    return rounded.convertToDouble();
  });
}

} // namespace gpuc
