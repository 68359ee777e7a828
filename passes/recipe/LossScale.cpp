//===- LossScale.cpp - Gradients that f16 can hold --------------------------===//

#include "passes/recipe/LossScale.h"

namespace gpuc {

using namespace mlir;

//===----------------------------------------------------------------------===//
// The recipe's wish
//===----------------------------------------------------------------------===//

static bool isSingleAboveZero(double number) {
  return number > 0 && std::isfinite(static_cast<float>(number)) && static_cast<float>(number) > 0;
}

static const SpecRange kScale = {"above 0, and within f32", isSingleAboveZero};
static const SpecRange kAboveOne = {"above 1", [](double number) { return number > 1; }};
static const SpecRange kFraction = {"above 0 and below 1",
                                    [](double number) { return number > 0 && number < 1; }};
static const SpecRange kSteps = {"a whole number of steps from 1 to 2147483647", [](double number) {
                                   return number >= 1 && number <= std::numeric_limits<int32_t>::max() &&
                                          number == std::floor(number);
                                 }};

FailureOr<std::optional<LossScale>> LossScale::fromSpec(ir::SpecAttr spec, EmitError emitError) {
  const SpecForm forms[] = {{"none", {}},
                            {"static", {{"scale", std::nullopt, kScale}}},
                            {"dynamic",
                             {{"init_scale", 65536, kScale},
                              {"growth_factor", 2, kAboveOne},
                              {"backoff_factor", 0.5, kFraction},
                              {"growth_interval", 2000, kSteps},
                              {"min_scale", 1, kScale}}}};
  FailureOr<SpecNumbers> numbers = readSpec(spec, "loss scale", forms, emitError);
  if (failed(numbers))
    return failure();
  if (spec.getName() == "none")
    return std::optional<LossScale>();
  if (spec.getName() == "static")
    return std::optional(LossScale{numbers->lookup("scale"), /*dynamic=*/false});
  LossScale result = {
      numbers->lookup("init_scale"),    /*dynamic=*/true,
      numbers->lookup("growth_factor"), numbers->lookup("backoff_factor"),
      numbers->lookup("min_scale"),     static_cast<int64_t>(numbers->lookup("growth_interval"))};
  if (result.minScale > result.scale)
    return emitError() << "loss scale dynamic: min_scale must not be above init_scale, but they are "
                       << numberText(result.minScale) << " and " << numberText(result.scale);
  return std::optional(result);
}

FailureOr<std::optional<LossScale>> LossScale::fromRecipe(ir::RecipeOp recipe) {
  if (std::optional<ir::SpecAttr> spec = recipe.getLossScale())
    return fromSpec(*spec, [&] { return recipe.emitOpError(); });
  std::optional<ir::SpecAttr> precision = recipe.getPrecision();
  if (!precision || precision->getName() != "fp16")
    return std::optional<LossScale>();
  return std::optional(LossScale{65536, /*dynamic=*/true});
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

FailureOr<ScaleVariables> ScaleVariables::find(ModuleOp module, const LossScale &lossScale) {
  Builder builder(module.getContext());
  ScaleVariables variables;
  if (!lossScale.dynamic)
    return variables;
  constexpr StringLiteral what = "a counter that scales the loss";
  variables.scale = findCounter(module, "loss_scale", builder.getF32Type(), lossScale.scale, what);
  variables.growthTracker = findCounter(module, "growth_tracker", builder.getI32Type(), 0, what);
  if (!variables.scale || !variables.growthTracker)
    return failure();
  return variables;
}

Value buildScale(StepBuilder &ops, const LossScale &lossScale, const ScaleVariables &variables) {
  if (variables.scale)
    return ops.read(variables.scale);
  return ops.constant(RankedTensorType::get({}, ops.builder().getF32Type()), lossScale.scale);
}

//===----------------------------------------------------------------------===//
// After the backward pass
//===----------------------------------------------------------------------===//

Value buildAllFinite(StepBuilder &ops, ArrayRef<Value> tensors) {
  Type f32 = ops.builder().getF32Type();
  Value broken; // how many are not finite
  for (Value tensor : tensors) {
    Value finite = ir::IsFiniteOp::create(ops.builder(), ops.location(), tensor);
    Value count = ops.sumOfAll(ops.cast(ops.negate(finite), f32));
    broken = broken ? ops.binary<ir::AddOp>(broken, count) : count;
  }
  return ops.compare(ir::Comparison::eq, broken, ops.constantLike(broken, 0));
}

NextScale buildScaleUpdate(StepBuilder &ops, const LossScale &lossScale, Value scale, Value growthTracker,
                           Value allFinite) {
  Type f32 = ops.builder().getF32Type();
  // As PyTorch's kernel: the product is one of f64, rounded once.
  Value wide = ops.cast(scale, ops.builder().getF64Type());
  auto times = [&](double factor) {
    return ops.cast(ops.binary<ir::MulOp>(wide, ops.constantLike(wide, factor)), f32);
  };
  Value grown = times(lossScale.growthFactor);
  Value grownIsFinite = ir::IsFiniteOp::create(ops.builder(), ops.location(), grown);
  grown = ops.select(grownIsFinite, grown, scale);
  Value lowered =
      ops.binary<ir::MaxOp>(times(lossScale.backoffFactor), ops.constantLike(scale, lossScale.minScale));

  Value steps = ops.binary<ir::AddOp>(growthTracker, ops.constantLike(growthTracker, 1));
  Value due = ops.compare(ir::Comparison::eq, steps,
                          ops.constantLike(growthTracker, static_cast<double>(lossScale.growthInterval)));
  Value zero = ops.constantLike(growthTracker, 0);
  return {ops.select(allFinite, ops.select(due, grown, scale), lowered),
          ops.select(allFinite, ops.select(due, zero, steps), zero)};
}

} // namespace gpuc
