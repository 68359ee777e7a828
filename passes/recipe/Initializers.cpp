//===- Initializers.cpp - The values that variables begin with --------------===//

#include "passes/recipe/Initializers.h"

#include "passes/base/Specs.h"

#include <cmath>

namespace gpuc {

using namespace mlir;

namespace {

enum class Distribution { constant, uniform, normal };

/// A distribution and its two numbers: value; low and high; mean and standard deviation.
struct Draw {
  Distribution distribution;
  double first, second = 0.0;
};

struct InitializerForm {
  SpecForm spec;
  Draw (*draw)(const SpecNumbers &);
};

Draw around0(double bound) { return {Distribution::uniform, -bound, bound}; }

/// kaiming_*: gain / √fan_in with the gain of a leaky ReLU of slope a, √(2 / (1 + a²)) [He et al. 2015].
double kaimingDeviation(const SpecNumbers &numbers) {
  double slope = numbers.lookup("a");
  return std::sqrt(2.0 / (1.0 + slope * slope)) / std::sqrt(numbers.lookup("fan_in"));
}

/// xavier_*: gain · √(2 / (fan_in + fan_out)) [Glorot and Bengio 2010].
double xavierDeviation(const SpecNumbers &numbers) {
  return numbers.lookup("gain") * std::sqrt(2.0 / (numbers.lookup("fan_in") + numbers.lookup("fan_out")));
}

/// Of any element type, i1 too.
constexpr SpecRange kAnyElement = {"a number, true or false", [](double) { return true; },
                                   /*takesFlags=*/true};

const InitializerForm kForms[] = {
    {{"constant", {{.name = "value", .range = kAnyElement, .mayBeInfinite = true}}},
     [](const SpecNumbers &numbers) { return Draw{Distribution::constant, numbers.lookup("value")}; }},
    {{"kaiming_normal", {{"fan_in", {}, kAboveZero}, {"a", 0.0}}},
     [](const SpecNumbers &numbers) { return Draw{Distribution::normal, 0.0, kaimingDeviation(numbers)}; }},
    // A uniform distribution in ±b has standard deviation b / √3.
    {{"kaiming_uniform", {{"fan_in", {}, kAboveZero}, {"a", std::sqrt(5.0)}}},
     [](const SpecNumbers &numbers) { return around0(std::sqrt(3.0) * kaimingDeviation(numbers)); }},
    {{"normal", {{"mean", 0.0}, {"std", 1.0, kNotNegative}}},
     [](const SpecNumbers &numbers) {
       return Draw{Distribution::normal, numbers.lookup("mean"), numbers.lookup("std")};
     }},
    {{"ones", {}}, [](const SpecNumbers &) { return Draw{Distribution::constant, 1.0}; }},
    {{"uniform", {{"bound", {}, kNotNegative}}},
     [](const SpecNumbers &numbers) { return around0(numbers.lookup("bound")); }},
    {{"xavier_normal", {{"fan_in", {}, kAboveZero}, {"fan_out", {}, kAboveZero}, {"gain", 1.0}}},
     [](const SpecNumbers &numbers) { return Draw{Distribution::normal, 0.0, xavierDeviation(numbers)}; }},
    {{"xavier_uniform", {{"fan_in", {}, kAboveZero}, {"fan_out", {}, kAboveZero}, {"gain", 1.0}}},
     [](const SpecNumbers &numbers) { return around0(std::sqrt(3.0) * xavierDeviation(numbers)); }},
    {{"zeros", {}}, [](const SpecNumbers &) { return Draw{Distribution::constant, 0.0}; }},
};

bool isIntegerOf(IntegerType type, double number) {
  const bool hasSign = !type.isUnsigned() && type.getWidth() > 1;
  const double end = std::ldexp(1.0, static_cast<int>(type.getWidth()) - hasSign);
  return number == std::trunc(number) && number >= (hasSign ? -end : 0.0) && number < end;
}

/// Whether a number is one of the type, rounded: no infinity that it was not, nor 0, nor another integer.
bool holds(Type type, double number) {
  auto floatType = dyn_cast<FloatType>(type);
  if (!floatType)
    return isIntegerOf(cast<IntegerType>(type), number);
  APFloat rounded(number);
  bool losesInfo;
  rounded.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  return rounded.isInfinity() == std::isinf(number) && rounded.isZero() == (number == 0);
}

/// An i64 as it is written: not each of them is a double. Null for what is none.
TypedAttr exactConstant(ir::SpecAttr spec, Type element) {
  auto value = dyn_cast_or_null<IntegerAttr>(spec.getArguments().get("value"));
  return spec.getName() == "constant" && value && value.getType() == element ? value : TypedAttr();
}

} // namespace

FailureOr<Value> buildInitialValue(OpBuilder &builder, ir::VariableOp variable, Value seed, Value step,
                                   int64_t id) {
  ir::SpecAttr spec = variable.getInitializer();
  auto specs = llvm::map_to_vector(kForms, [](const InitializerForm &form) { return form.spec; });
  FailureOr<SpecNumbers> numbers =
      readSpec(spec, "initializer", specs, [&] { return variable.emitOpError(); });
  if (failed(numbers))
    return failure();
  auto form =
      llvm::find_if(kForms, [&](const InitializerForm &form) { return form.spec.name == spec.getName(); });
  Draw draw = form->draw(*numbers);

  RankedTensorType type = variable.getWholeType();
  Location location = NameLoc::get(variable.getSymNameAttr(), variable.getLoc());
  if (TypedAttr exact = exactConstant(spec, type.getElementType()))
    return ir::ConstantOp::create(builder, location, type, exact).getResult();
  if (draw.distribution == Distribution::constant && !holds(type.getElementType(), draw.first))
    return variable.emitOpError("has elements of type ")
           << type.getElementType() << ", none of which is " << numberText(draw.first);
  if (draw.distribution == Distribution::constant)
    return ir::ConstantOp::create(builder, location, type, draw.first).getResult();
  if (!isa<FloatType>(type.getElementType()))
    return variable.emitOpError("has elements of type ")
           << type.getElementType() << ", which " << spec.getName()
           << " cannot draw: use zeros, ones or constant";
  IntegerAttr idAttr = builder.getI64IntegerAttr(id);
  FloatAttr first = builder.getF64FloatAttr(draw.first), second = builder.getF64FloatAttr(draw.second);
  if (draw.distribution == Distribution::uniform)
    return ir::RandomUniformOp::create(builder, location, type, seed, step, idAttr, first, second)
        .getResult();
  return ir::RandomNormalOp::create(builder, location, type, seed, step, idAttr, first, second).getResult();
}

} // namespace gpuc
