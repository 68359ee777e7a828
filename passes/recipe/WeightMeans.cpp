//===- WeightMeans.cpp - A running mean of the weights -----------------------===//

#include "passes/recipe/WeightMeans.h"

#include "llvm/ADT/StringSet.h"

namespace gpuc {

using namespace mlir;
using ir::Expr;

static constexpr StringLiteral kSuffix = "/ema";

static std::string meanOf(StringRef variable) { return (variable + kSuffix).str(); }

FailureOr<WeightMeans> WeightMeans::fromSpec(ir::SpecAttr spec, EmitError emitError) {
  static const SpecRange fraction = {"from 0 to 1", [](double number) { return number >= 0 && number <= 1; }};
  static const SpecForm form = {"ema", {{"decay", 0.999, fraction}, {"evaluate", 1.0, kFlag}}};
  FailureOr<SpecNumbers> numbers = readSpec(spec, "running mean", form, emitError);
  if (failed(numbers))
    return failure();
  return WeightMeans{numbers->lookup("decay"), numbers->lookup("evaluate") != 0};
}

void WeightMeans::build(ModuleOp module, StepBuilder &ops, ir::VariableOp variable, Expr updated,
                        Value step) const {
  Builder attributes(module.getContext());
  auto copy = ir::SpecAttr::get(module.getContext(), "copy",
                                attributes.getDictionaryAttr(attributes.getNamedAttr(
                                    "variable", attributes.getStringAttr(variable.getSymName()))));
  ir::VariableOp mean = declareVariable(module, variable.getLoc(), meanOf(variable.getSymName()),
                                        cast<RankedTensorType>(variable.getType()), copy, "optimizer");
  shareOutAs(mean, variable, kSuffix);
  Expr kept = ops.read(mean) * decay, added = updated * (1 - decay);
  Expr isFirst = ops.at(step) == 1;
  ops.assign(mean, choose(isFirst, updated, kept + added));
}

void readMeans(func::FuncOp function) {
  llvm::StringSet<> names;
  for (auto variable : function->getParentOfType<ModuleOp>().getOps<ir::VariableOp>()) {
    names.insert(variable.getSymName());
    if (variable.getOwners())
      for (StringRef owner : variable.getOwnersAttr().getAsValueRange<StringAttr>())
        names.insert(owner);
  }
  function.walk([&](ir::ReadOp read) {
    if (std::string mean = meanOf(read.getVariable()); names.contains(mean))
      read.setVariable(mean);
  });
}

StringRef copiedVariable(ir::VariableOp variable) {
  ir::SpecAttr spec = variable.getInitializer();
  auto source = dyn_cast_or_null<StringAttr>(spec.getArguments().get("variable"));
  return spec.getName() == "copy" && source ? source.getValue() : "";
}

} // namespace gpuc
