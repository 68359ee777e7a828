//===- Optimizers.cpp - What a recipe's optimizer does to a variable ---------===//

#include "passes/Optimizers.h"

#include "llvm/Support/Format.h"

namespace gpuc {

using namespace mlir;

/// An optimizer: its keys, what it refuses (in PyTorch's words; empty if nothing), its slots and its update.
struct OptimizerForm {
  SpecForm spec;
  std::string (*check)(const Optimizer &);
  SmallVector<StringRef> (*slots)(const Optimizer &);
  SmallVector<Value> (*update)(const Optimizer &, OpBuilder &, Location, const UpdateOperands &);
};

static std::string text(double number) {
  std::string result;
  llvm::raw_string_ostream(result) << llvm::format("%g", number);
  return result;
}

/// What torch.optim says of a key below zero.
static std::string checkNotNegative(const Optimizer &optimizer, StringRef key, StringRef name) {
  double number = optimizer.number(key);
  return number >= 0 ? "" : "Invalid " + name.str() + ": " + text(number);
}

//===----------------------------------------------------------------------===//
// sgd
//===----------------------------------------------------------------------===//

static std::string checkSgd(const Optimizer &sgd) {
  for (auto [key, name] : {std::pair("lr", "learning rate"),
                           {"momentum", "momentum value"},
                           {"weight_decay", "weight_decay value"}})
    if (std::string error = checkNotNegative(sgd, key, name); !error.empty())
      return error;
  if (sgd.number("nesterov") != 0 && (sgd.number("momentum") <= 0 || sgd.number("dampening") != 0))
    return "Nesterov momentum requires a momentum and zero dampening";
  return "";
}

static SmallVector<StringRef> sgdSlots(const Optimizer &sgd) {
  if (sgd.number("momentum") == 0)
    return {};
  return {"momentum_buffer"};
}

static SmallVector<Value> updateSgd(const Optimizer &sgd, OpBuilder &builder, Location location,
                                    const UpdateOperands &operands) {
  Value buffer = operands.slots.empty() ? Value() : operands.slots.front();
  SmallVector<Type> types(1 + operands.slots.size(), operands.weight.getType());
  auto update = ir::SgdUpdateOp::create(
      builder, location, types, operands.weight, operands.gradient, buffer, operands.step, operands.lr,
      builder.getF64FloatAttr(sgd.number("momentum")), builder.getF64FloatAttr(sgd.number("dampening")),
      builder.getF64FloatAttr(sgd.number("weight_decay")), builder.getBoolAttr(sgd.number("nesterov") != 0));
  return SmallVector<Value>(update->getResults());
}

//===----------------------------------------------------------------------===//
// adam, adamw
//===----------------------------------------------------------------------===//

static std::string checkAdam(const Optimizer &adam) {
  for (auto [key, name] :
       {std::pair("lr", "learning rate"), {"eps", "epsilon value"}, {"weight_decay", "weight_decay value"}})
    if (std::string error = checkNotNegative(adam, key, name); !error.empty())
      return error;
  for (int index : {0, 1}) {
    double beta = adam.number(index == 0 ? "beta1" : "beta2");
    if (!(beta >= 0 && beta < 1))
      return "Invalid beta parameter at index " + std::to_string(index) + ": " + text(beta);
  }
  return "";
}

static SmallVector<StringRef> adamSlots(const Optimizer &) { return {"exp_avg", "exp_avg_sq"}; }

template <bool decoupled>
static SmallVector<Value> updateAdam(const Optimizer &adam, OpBuilder &builder, Location location,
                                     const UpdateOperands &operands) {
  Type type = operands.weight.getType();
  auto update = ir::AdamUpdateOp::create(
      builder, location, TypeRange{type, type, type}, operands.weight, operands.gradient, operands.slots[0],
      operands.slots[1], operands.step, operands.lr, builder.getF64FloatAttr(adam.number("beta1")),
      builder.getF64FloatAttr(adam.number("beta2")), builder.getF64FloatAttr(adam.number("eps")),
      builder.getF64FloatAttr(adam.number("weight_decay")), decoupled ? builder.getUnitAttr() : UnitAttr());
  return SmallVector<Value>(update->getResults());
}

static SmallVector<SpecKey> adamKeys(double weightDecay) {
  return {{"lr", 1e-3}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"weight_decay", weightDecay}};
}

//===----------------------------------------------------------------------===//
// The registry
//===----------------------------------------------------------------------===//

static ArrayRef<OptimizerForm> optimizerForms() {
  static const OptimizerForm forms[] = {
      {{"adam", adamKeys(0.0)}, checkAdam, adamSlots, updateAdam<false>},
      {{"adamw", adamKeys(0.01)}, checkAdam, adamSlots, updateAdam<true>},
      {{"sgd",
        {{"lr", 1e-3}, {"momentum", 0.0}, {"dampening", 0.0}, {"weight_decay", 0.0}, {"nesterov", 0.0}}},
       checkSgd,
       sgdSlots,
       updateSgd},
  };
  return forms;
}

FailureOr<Optimizer> Optimizer::fromSpec(ir::SpecAttr spec, function_ref<InFlightDiagnostic()> emitError) {
  auto specs = llvm::map_to_vector(optimizerForms(), [](const OptimizerForm &form) { return form.spec; });
  FailureOr<SpecNumbers> numbers = readSpec(spec, "optimizer", specs, emitError);
  if (failed(numbers))
    return failure();
  Optimizer optimizer;
  optimizer.form_ =
      llvm::find_if(optimizerForms(), [&](auto &form) { return form.spec.name == spec.getName(); });
  optimizer.numbers_ = std::move(*numbers);
  if (std::string error = optimizer.form_->check(optimizer); !error.empty())
    return emitError() << "optimizer " << spec.getName() << ": " << error;
  return optimizer;
}

SmallVector<StringRef> Optimizer::slots() const { return form_->slots(*this); }

SmallVector<Value> Optimizer::buildUpdate(OpBuilder &builder, Location location,
                                          const UpdateOperands &operands) const {
  return form_->update(*this, builder, location, operands);
}

} // namespace gpuc
