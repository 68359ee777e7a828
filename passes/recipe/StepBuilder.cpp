//===- StepBuilder.cpp - The arithmetic of a recipe, as ops ------------------===//

#include "passes/recipe/StepBuilder.h"

namespace gpuc {

using namespace mlir;

ir::Expr StepBuilder::read(ir::VariableOp variable) {
  return at(ir::ReadOp::create(builder_, location_, variable.getType(),
                               FlatSymbolRefAttr::get(variable.getSymNameAttr())));
}

void StepBuilder::assign(ir::VariableOp variable, Value value) {
  ir::AssignOp::create(builder_, location_, FlatSymbolRefAttr::get(variable.getSymNameAttr()), value);
}

ir::Expr spread(Value scalar, ir::Expr like) {
  return broadcastScalar(cast(like.at(scalar), like.elementType()), like.shape());
}

ir::Expr choose(Value condition, ir::Expr yes, ir::Expr no) {
  return select(broadcastScalar(yes.at(condition), yes.shape()), yes, no);
}

ir::VariableOp declareVariable(ModuleOp module, Location location, StringRef name, RankedTensorType type,
                               ir::SpecAttr initializer, StringRef kind) {
  OpBuilder builder(module.getBodyRegion());
  // Behind the last one, which few functions follow.
  auto isVariable = [](Operation &op) { return isa<ir::VariableOp>(op); };
  Block::reverse_iterator last = llvm::find_if(llvm::reverse(*module.getBody()), isVariable);
  if (last != module.getBody()->rend())
    builder.setInsertionPointAfter(&*last);
  return ir::VariableOp::create(builder, location, name, type, initializer, /*frozen=*/false, kind);
}

void shareOutAs(ir::VariableOp mine, ir::VariableOp variable, StringRef suffix) {
  mine.setShardOfAttr(variable.getShardOfAttr());
  mine.setShardsAttr(variable.getShardsAttr());
  if (!variable.getOwners())
    return;
  SmallVector<Attribute> owners;
  for (StringRef owner : variable.getOwnersAttr().getAsValueRange<StringAttr>())
    owners.push_back(StringAttr::get(mine.getContext(), owner + suffix));
  mine.setOwnersAttr(ArrayAttr::get(mine.getContext(), owners));
}

ir::VariableOp findCounter(ModuleOp module, StringRef name, Type element, double first, StringRef what) {
  MLIRContext *context = module.getContext();
  auto type = RankedTensorType::get({}, element ? element : IntegerType::get(context, 64));
  Operation *known = module.lookupSymbol(name);
  if (!known)
    return declareVariable(module, module.getLoc(), name, type, constantInitializer(context, first),
                           "counter");
  auto variable = dyn_cast<ir::VariableOp>(known);
  if (variable && variable.getType() == type && variable.getKind() == "counter")
    return variable;
  known->emitOpError("is named @") << name << ", which is the name of " << what << ", a variable of type "
                                   << type;
  return {};
}

ir::SpecAttr constantInitializer(MLIRContext *context, double number) {
  Builder builder(context);
  if (number == 0)
    return ir::SpecAttr::get(context, "zeros", builder.getDictionaryAttr({}));
  NamedAttribute value = builder.getNamedAttr("value", builder.getF64FloatAttr(number));
  return ir::SpecAttr::get(context, "constant", builder.getDictionaryAttr(value));
}

} // namespace gpuc
