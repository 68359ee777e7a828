//===- Optimizers.cpp - What a recipe's optimizer does to a variable ---------===//

#include "passes/recipe/Optimizers.h"

#include "passes/recipe/OptimizerForms.h"

namespace gpuc {

using namespace mlir;

static const OptimizerForm *findForm(StringRef name) {
  return llvm::find_if(optimizerForms(), [&](const OptimizerForm &form) { return form.spec.name == name; });
}

FailureOr<Optimizer> Optimizer::fromSpec(ir::SpecAttr spec, EmitError emitError) {
  auto specs = llvm::map_to_vector(optimizerForms(), [](const OptimizerForm &form) { return form.spec; });
  FailureOr<SpecNumbers> numbers = readSpec(spec, "optimizer", specs, emitError);
  if (failed(numbers))
    return failure();
  Optimizer optimizer;
  optimizer.form_ = findForm(spec.getName());
  optimizer.numbers_ = std::move(*numbers);
  if (failed(optimizer.check(emitError)))
    return failure();
  return optimizer;
}

LogicalResult Optimizer::check(EmitError emitError) const {
  std::string error = form_->check ? form_->check(*this) : "";
  return error.empty() ? success() : emitError() << "optimizer " << form_->spec.name << ": " << error;
}

FailureOr<SpecNumbers> Optimizer::readGroup(ir::SpecAttr spec, ArrayRef<StringRef> others,
                                            EmitError emitError) const {
  FailureOr<SpecNumbers> group = readGivenKeys(spec, "optimizer", form_->spec, emitError, others);
  if (failed(group))
    return failure();
  Optimizer changed = *this;
  for (const auto &[key, number] : *group)
    changed.numbers_[key] = number;
  if (failed(changed.check(emitError)))
    return failure();
  return group;
}

Optimizer Optimizer::forVariable(RankedTensorType variable, const SpecNumbers &group) const {
  Optimizer optimizer = *this;
  bool isMatrix = variable.getRank() >= 2;
  double decay = group.contains("decay") ? group.lookup("decay") : number("decay");
  if (!isMatrix && decay == kDecayMatrices)
    for (StringRef key : {"weight_decay", "adam_weight_decay"})
      if (auto found = optimizer.numbers_.find(key); found != optimizer.numbers_.end())
        found->second = 0;
  for (const auto &[key, number] : group)
    optimizer.numbers_[key] = number;
  bool isAdam = form_->spec.name == "muon" && (!isMatrix || !optimizer.flag("use_muon"));
  return isAdam ? optimizer.asOther("adamw", "adam_") : optimizer;
}

Optimizer Optimizer::asOther(StringRef name, StringRef prefix) const {
  Optimizer other;
  other.form_ = findForm(name);
  for (const SpecKey &key : other.form_->spec.keys) {
    auto found = numbers_.find((prefix + key.name).str());
    other.numbers_[key.name] = found == numbers_.end() ? *key.otherwise : found->second;
  }
  other.numbers_[kMaximize] = number(kMaximize);
  return other;
}

SmallVector<OptimizerSlot> Optimizer::slots(RankedTensorType variable) const {
  SmallVector<OptimizerSlot> slots;
  for (const SlotForm &slot : form_->slots)
    if (slot.unless0.empty() || number(slot.unless0) != 0)
      slots.push_back({slot.name, variable, slot.initial.empty() ? 0 : number(slot.initial)});
  if (form_->otherSlots)
    llvm::append_range(slots, form_->otherSlots(variable));
  return slots;
}

SmallVector<StringRef> Optimizer::givable(ArrayRef<StringRef> names) const {
  if (!form_->givable)
    return {};
  return llvm::filter_to_vector(names, [&](StringRef name) {
    const bool isMean = name == "beta1" || name == "beta2"; // Nothing hangs on whether it is 0.
    return llvm::is_contained(form_->givable(), name) && (isMean || number(name) != 0);
  });
}

bool Optimizer::needsWhole() const { return form_->needsWhole; }

SmallVector<Value> Optimizer::buildUpdate(OpBuilder &builder, Location location,
                                          const UpdateOperands &operands) const {
  UpdateOperands taken = operands;
  if (flag(kMaximize))
    taken.gradient = ir::NegOp::create(builder, location, taken.gradient);
  return llvm::to_vector_of<Value>(form_->update(*this, builder, location, taken)->getResults());
}

} // namespace gpuc
