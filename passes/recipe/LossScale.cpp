//===- LossScale.cpp - Gradients that f16 can hold --------------------------===//

#include "passes/recipe/LossScale.h"

namespace gpuc {

using namespace mlir;
using ir::Expr;

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

LogicalResult LossScale::declareVariables(ModuleOp module) {
  if (!dynamic)
    return success();
  Builder builder(module.getContext());
  constexpr StringLiteral what = "a counter that scales the loss";
  scaleVariable = findCounter(module, "loss_scale", builder.getF32Type(), scale, what);
  growthTracker = findCounter(module, "growth_tracker", builder.getI32Type(), 0, what);
  return success(scaleVariable && growthTracker);
}

Expr LossScale::build(StepBuilder &ops) const {
  if (scaleVariable)
    return ops.read(scaleVariable);
  return ops.constant(RankedTensorType::get({}, ops.builder().getF32Type()), scale);
}

//===----------------------------------------------------------------------===//
// After the backward pass
//===----------------------------------------------------------------------===//

Expr countBroken(Expr tensor) {
  Expr broken = !isFinite(tensor);
  return sumAll(cast(broken, Float32Type::get(broken.type().getContext())));
}

void LossScale::buildUpdate(StepBuilder &ops, Expr scale, Value allFinite) const {
  if (!dynamic)
    return;
  Expr tracker = ops.read(growthTracker);
  // As PyTorch's kernel: the product is one of f64, rounded once.
  Expr wide = cast(scale, ops.builder().getF64Type());
  auto times = [&](double factor) { return cast(wide * factor, scale.elementType()); };
  Expr grown = times(growthFactor);
  grown = select(isFinite(grown), grown, scale);
  Expr lowered = max(times(backoffFactor), minScale);

  Expr steps = tracker + 1;
  Expr due = steps == static_cast<double>(growthInterval);
  Expr zero = tracker.constant(0);
  Expr nextScale = choose(allFinite, choose(due, grown, scale), lowered);
  Expr nextTracker = choose(allFinite, choose(due, zero, steps), zero);
  ops.assign(scaleVariable, nextScale);
  ops.assign(growthTracker, nextTracker);
}

} // namespace gpuc
