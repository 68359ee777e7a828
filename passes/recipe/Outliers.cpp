//===- Outliers.cpp - Updates that are left out because they stand out ------===//

#include "passes/recipe/Outliers.h"

#include "passes/recipe/StepBuilder.h"

#include <cmath>

namespace gpuc {

using namespace mlir;
using ir::Expr;

//===----------------------------------------------------------------------===//
// What a recipe says
//===----------------------------------------------------------------------===//

/// What is wrong with a bound for scores among `window` values; empty if nothing is. The score of one value
/// that is far from all others, which are equal, is √(window - 1); there is none above that.
static std::string checkBound(StringRef key, double bound, double window) {
  double greatest = std::sqrt(window - 1);
  if (!(bound > 0))
    return (key + " must be above 0, but is " + numberText(bound)).str();
  if (bound >= greatest)
    return (key + " = " + numberText(bound) + " would leave out nothing: the greatest score among " +
            numberText(window) + " values is " + numberText(greatest, 4))
        .str();
  return "";
}

FailureOr<Outliers> Outliers::fromSpec(ir::SpecAttr spec, EmitError emitError) {
  const SpecForm form = {"outliers", {{"loss", 0.0}, {"grad_norm", 0.0}, {"window", 128.0}}};
  FailureOr<SpecNumbers> numbers = readSpec(spec, "skip", form, emitError);
  if (failed(numbers))
    return failure();
  auto fail = [&](const Twine &message) { return emitError() << "skip outliers: " << message; };
  double window = numbers->lookup("window");
  if (!(window >= 2 && window <= 1 << 20 && window == std::floor(window)))
    return fail("window must be an integer from 2 to 1048576, but is " + numberText(window));
  Outliers outliers;
  outliers.window_ = static_cast<int64_t>(window);
  for (auto [key, member] : {std::pair("loss", &Outliers::loss_), {"grad_norm", &Outliers::norm_}}) {
    if (!spec.getArguments().contains(key))
      continue;
    outliers.*member = numbers->lookup(key);
    if (std::string error = checkBound(key, numbers->lookup(key), window); !error.empty())
      return fail(error);
  }
  if (!outliers.loss_ && !outliers.norm_)
    return fail("say above which score, of loss, grad_norm or both: outliers:loss=6,grad_norm=6");
  return outliers;
}

//===----------------------------------------------------------------------===//
// What a step does
//===----------------------------------------------------------------------===//

/// How many standard deviations `value` lies above the mean of `values`, of which it is one. NaN if all are
/// equal.
static Expr scoreOf(Expr value, Expr values) {
  double count = values.shape()[0];
  Expr mean = sumAll(values) / count;
  Expr deviation = values - broadcastScalar(mean, values.shape());
  return (value - mean) / sqrt(sumAll(deviation * deviation) / count);
}

Value Outliers::buildKeep(ModuleOp module, OpBuilder &builder, Location location, Value loss,
                          Value norm) const {
  // Slots of @step by name: a plan without them passes over them in a file.
  auto declare = [&](StringRef name, ArrayRef<int64_t> shape, Type element) {
    return declareVariable(module, location, name, RankedTensorType::get(shape, element),
                           constantInitializer(builder.getContext(), 0), "counter");
  };
  StepBuilder ops(builder, location);
  ir::VariableOp counter = declare("step/recorded", {}, builder.getI64Type());
  Expr recorded = ops.read(counter);
  auto wide = [&](Value value) { return cast(recorded.at(value), builder.getF64Type()); };
  Expr isFinite = ir::isFinite(wide(loss)) & ir::isFinite(wide(norm));
  Expr isFull = recorded >= static_cast<double>(window_);
  Expr place = rem(recorded, static_cast<double>(window_));

  /// Puts `value` in place of the oldest one. Whether it may stay within `bound`.
  auto record = [&](StringRef name, Expr value, double bound) {
    ir::VariableOp variable = declare(name, {window_}, builder.getF64Type());
    Expr window = ops.read(variable);
    Expr index = value.make<ir::IotaOp>(RankedTensorType::get({window_}, builder.getI64Type()), 0);
    Expr isPlace = index == broadcastScalar(place, {window_});
    Expr values = select(isPlace, broadcastScalar(value, {window_}), window);
    ops.assign(variable, choose(isFinite, values, window));
    return !(isFull & (scoreOf(value, values) > bound));
  };
  Expr keep = isFinite;
  if (loss_)
    keep = keep & record("step/losses", wide(loss), *loss_);
  if (norm_)
    keep = keep & record("step/grad_norms", wide(norm), *norm_);
  ops.assign(counter, select(isFinite, recorded + 1, recorded));
  return keep;
}

} // namespace gpuc
