//===- OptimizerForms.cpp - The registry of optimizers -----------------------===//

#include "passes/OptimizerForms.h"

#include "llvm/Support/Format.h"

#include <cmath>

namespace gpuc {

using namespace mlir;

//===----------------------------------------------------------------------===//
// What they share
//===----------------------------------------------------------------------===//

/// A key that must not be negative, and what torch.optim calls it.
using NamedKey = std::pair<StringRef, StringRef>;

static std::string invalid(StringRef name, double number) {
  std::string result = ("Invalid " + name + ": ").str();
  llvm::raw_string_ostream(result) << llvm::format("%g", number);
  return result;
}

static std::string checkNotNegative(const Optimizer &optimizer, ArrayRef<NamedKey> keys) {
  for (auto [key, name] : keys)
    if (!(optimizer.number(key) >= 0))
      return invalid(name, optimizer.number(key));
  return "";
}

static std::string checkBetas(const Optimizer &optimizer, StringRef prefix = "") {
  for (int index : {0, 1}) {
    double beta = optimizer.number((prefix + (index == 0 ? "beta1" : "beta2")).str());
    if (!(beta >= 0 && beta < 1))
      return invalid("beta parameter at index " + std::to_string(index), beta);
  }
  return "";
}

static SmallVector<OptimizerSlot> likeVariable(RankedTensorType variable, ArrayRef<StringRef> names) {
  return llvm::map_to_vector(names, [&](StringRef name) { return OptimizerSlot{name, variable}; });
}

/// Weight decay, and what it is of if the spec does not say: optimizers that add it to the gradient have it
/// of all variables, as in PyTorch; where it is apart from the gradient, of matrices.
static void addDecay(SmallVector<SpecKey> &keys, double weightDecay, double decay) {
  keys.push_back({"weight_decay", weightDecay});
  keys.push_back({"decay", decay, {"all", "matrices"}});
}

static SmallVector<SpecKey> keysOf(SmallVector<SpecKey> keys, double weightDecay, double decay) {
  addDecay(keys, weightDecay, decay);
  return keys;
}

namespace {

/// Builds the attributes of an update from the optimizer's numbers.
struct Numbers {
  const Optimizer &optimizer;
  OpBuilder &builder;

  FloatAttr operator()(StringRef key) const { return builder.getF64FloatAttr(optimizer.number(key)); }
  BoolAttr flag(StringRef key) const { return builder.getBoolAttr(optimizer.flag(key)); }
};

} // namespace

/// The types of the new weight and the new slots.
static SmallVector<Type> resultTypes(const UpdateOperands &operands) {
  SmallVector<Type> types = {operands.weight.getType()};
  llvm::append_range(types, ValueRange(operands.slots).getTypes());
  return types;
}

static SmallVector<Value> resultsOf(Operation *update) { return SmallVector<Value>(update->getResults()); }

//===----------------------------------------------------------------------===//
// sgd
//===----------------------------------------------------------------------===//

static std::string checkSgd(const Optimizer &sgd) {
  std::string error = checkNotNegative(
      sgd, {{"lr", "learning rate"}, {"momentum", "momentum value"}, {"weight_decay", "weight_decay value"}});
  if (error.empty() && sgd.flag("nesterov") && (sgd.number("momentum") <= 0 || sgd.number("dampening") != 0))
    return "Nesterov momentum requires a momentum and zero dampening";
  return error;
}

static SmallVector<OptimizerSlot> sgdSlots(const Optimizer &sgd, RankedTensorType variable) {
  return sgd.number("momentum") == 0 ? SmallVector<OptimizerSlot>()
                                     : likeVariable(variable, {"momentum_buffer"});
}

static SmallVector<Value> updateSgd(const Optimizer &sgd, OpBuilder &builder, Location location,
                                    const UpdateOperands &operands) {
  Numbers number{sgd, builder};
  Value buffer = operands.slots.empty() ? Value() : operands.slots.front();
  return resultsOf(ir::SgdUpdateOp::create(
      builder, location, resultTypes(operands), operands.weight, operands.gradient, buffer, operands.step,
      operands.lr, number("momentum"), number("dampening"), number("weight_decay"), number.flag("nesterov")));
}

//===----------------------------------------------------------------------===//
// adam, adamw
//===----------------------------------------------------------------------===//

static std::string checkAdam(const Optimizer &adam) {
  std::string error = checkNotNegative(
      adam, {{"lr", "learning rate"}, {"eps", "epsilon value"}, {"weight_decay", "weight_decay value"}});
  return error.empty() ? checkBetas(adam) : error;
}

static SmallVector<OptimizerSlot> adamSlots(const Optimizer &adam, RankedTensorType variable) {
  SmallVector<OptimizerSlot> slots = likeVariable(variable, {"exp_avg", "exp_avg_sq"});
  if (adam.flag("amsgrad"))
    slots.push_back({"max_exp_avg_sq", variable});
  return slots;
}

template <bool decoupled>
static SmallVector<Value> updateAdam(const Optimizer &adam, OpBuilder &builder, Location location,
                                     const UpdateOperands &operands) {
  Numbers number{adam, builder};
  Value largest = operands.slots.size() > 2 ? operands.slots[2] : Value();
  return resultsOf(ir::AdamUpdateOp::create(
      builder, location, resultTypes(operands), operands.weight, operands.gradient, operands.slots[0],
      operands.slots[1], largest, operands.step, operands.lr, number("beta1"), number("beta2"), number("eps"),
      number("weight_decay"), decoupled ? builder.getUnitAttr() : UnitAttr()));
}

static SmallVector<SpecKey> adamKeys(double weightDecay, double decay) {
  return keysOf({{"lr", 1e-3}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"amsgrad", 0.0}},
                weightDecay, decay);
}

//===----------------------------------------------------------------------===//
// rmsprop
//===----------------------------------------------------------------------===//

static std::string checkRmsprop(const Optimizer &rmsprop) {
  return checkNotNegative(rmsprop, {{"lr", "learning rate"},
                                    {"eps", "epsilon value"},
                                    {"momentum", "momentum value"},
                                    {"weight_decay", "weight_decay value"},
                                    {"alpha", "alpha value"}});
}

static SmallVector<OptimizerSlot> rmspropSlots(const Optimizer &rmsprop, RankedTensorType variable) {
  SmallVector<OptimizerSlot> slots = likeVariable(variable, {"square_avg"});
  if (rmsprop.number("momentum") != 0)
    slots.push_back({"momentum_buffer", variable});
  if (rmsprop.flag("centered"))
    slots.push_back({"grad_avg", variable});
  return slots;
}

static SmallVector<Value> updateRmsprop(const Optimizer &rmsprop, OpBuilder &builder, Location location,
                                        const UpdateOperands &operands) {
  Numbers number{rmsprop, builder};
  Value buffer = rmsprop.number("momentum") != 0 ? operands.slots[1] : Value();
  Value mean = rmsprop.flag("centered") ? operands.slots.back() : Value();
  return resultsOf(ir::RmspropUpdateOp::create(
      builder, location, resultTypes(operands), operands.weight, operands.gradient, operands.slots[0], buffer,
      mean, operands.lr, number("alpha"), number("eps"), number("weight_decay"), number("momentum")));
}

//===----------------------------------------------------------------------===//
// adagrad
//===----------------------------------------------------------------------===//

static std::string checkAdagrad(const Optimizer &adagrad) {
  return checkNotNegative(adagrad, {{"lr", "learning rate"},
                                    {"lr_decay", "lr_decay value"},
                                    {"weight_decay", "weight_decay value"},
                                    {"initial_accumulator_value", "initial_accumulator_value value"},
                                    {"eps", "epsilon value"}});
}

static SmallVector<OptimizerSlot> adagradSlots(const Optimizer &adagrad, RankedTensorType variable) {
  return {{"sum", variable, adagrad.number("initial_accumulator_value")}};
}

static SmallVector<Value> updateAdagrad(const Optimizer &adagrad, OpBuilder &builder, Location location,
                                        const UpdateOperands &operands) {
  Numbers number{adagrad, builder};
  return resultsOf(ir::AdagradUpdateOp::create(
      builder, location, resultTypes(operands), operands.weight, operands.gradient, operands.slots[0],
      operands.step, operands.lr, number("lr_decay"), number("eps"), number("weight_decay")));
}

//===----------------------------------------------------------------------===//
// lion
//===----------------------------------------------------------------------===//

static std::string checkLion(const Optimizer &lion) {
  std::string error =
      checkNotNegative(lion, {{"lr", "learning rate"}, {"weight_decay", "weight_decay value"}});
  return error.empty() ? checkBetas(lion) : error;
}

static SmallVector<OptimizerSlot> lionSlots(const Optimizer &, RankedTensorType variable) {
  return likeVariable(variable, {"exp_avg"});
}

static SmallVector<Value> updateLion(const Optimizer &lion, OpBuilder &builder, Location location,
                                     const UpdateOperands &operands) {
  Numbers number{lion, builder};
  return resultsOf(ir::LionUpdateOp::create(builder, location, resultTypes(operands), operands.weight,
                                            operands.gradient, operands.slots[0], operands.lr,
                                            number("beta1"), number("beta2"), number("weight_decay")));
}

//===----------------------------------------------------------------------===//
// adafactor
//===----------------------------------------------------------------------===//

static std::string checkAdafactor(const Optimizer &adafactor) {
  std::string error = checkNotNegative(adafactor, {{"lr", "learning rate"},
                                                   {"eps1", "epsilon1"},
                                                   {"eps2", "epsilon2"},
                                                   {"weight_decay", "weight_decay value"}});
  if (error.empty() && !(adafactor.number("beta2_decay") <= 0))
    return "beta2_decay should be <= 0";
  if (error.empty() && !(adafactor.number("d") >= 1))
    return "Clipping threshold d should be >= 1";
  return error;
}

static SmallVector<OptimizerSlot> adafactorSlots(const Optimizer &, RankedTensorType variable) {
  SmallVector<Type> types = ir::AdafactorUpdateOp::getVarianceTypes(variable);
  if (types.size() == 1)
    return {{"variance", types[0]}};
  return {{"row_var", types[0]}, {"col_var", types[1]}};
}

/// An eps1 of 0, the default, is the distance from 1 to the next number of the variable's type.
static double leastScale(const Optimizer &adafactor, Type element) {
  if (adafactor.number("eps1") != 0)
    return adafactor.number("eps1");
  return std::ldexp(1.0, 1 - static_cast<int>(cast<FloatType>(element).getFPMantissaWidth()));
}

static SmallVector<Value> updateAdafactor(const Optimizer &adafactor, OpBuilder &builder, Location location,
                                          const UpdateOperands &operands) {
  Numbers number{adafactor, builder};
  double eps1 = leastScale(adafactor, getElementTypeOrSelf(operands.weight.getType()));
  return resultsOf(ir::AdafactorUpdateOp::create(
      builder, location, resultTypes(operands), operands.weight, operands.gradient, operands.slots,
      operands.step, operands.lr, number("beta2_decay"), builder.getF64FloatAttr(eps1), number("eps2"),
      number("d"), number("weight_decay")));
}

//===----------------------------------------------------------------------===//
// muon
//===----------------------------------------------------------------------===//

static std::string checkMuon(const Optimizer &muon) {
  std::string error = checkNotNegative(muon, {{"lr", "learning rate"},
                                              {"weight_decay", "weight_decay value"},
                                              {"adam_lr", "learning rate of adam"},
                                              {"adam_eps", "epsilon value of adam"},
                                              {"adam_weight_decay", "weight_decay value of adam"}});
  if (error.empty())
    error = checkBetas(muon, "adam_");
  double momentum = muon.number("momentum"), steps = muon.number("ns_steps");
  if (error.empty() && !(momentum >= 0 && momentum < 1))
    return invalid("momentum value", momentum);
  if (error.empty() && !(steps >= 1 && steps <= 99 && steps == std::floor(steps)))
    return invalid("ns_steps, which is an integer from 1 to 99", steps);
  return error;
}

static SmallVector<OptimizerSlot> muonSlots(const Optimizer &, RankedTensorType variable) {
  return likeVariable(variable, {"momentum_buffer"});
}

static SmallVector<Value> updateMuon(const Optimizer &muon, OpBuilder &builder, Location location,
                                     const UpdateOperands &operands) {
  Numbers number{muon, builder};
  auto steps = static_cast<int64_t>(muon.number("ns_steps"));
  return resultsOf(ir::MuonUpdateOp::create(builder, location, resultTypes(operands), operands.weight,
                                            operands.gradient, operands.slots[0], operands.lr,
                                            number("momentum"), number.flag("nesterov"),
                                            builder.getI64IntegerAttr(steps), number("weight_decay")));
}

/// Defaults of both parts are the author's. `use_muon` is for groups: embeddings and heads are matrices, but
/// better left to adam.
static SmallVector<SpecKey> muonKeys() {
  return keysOf({{"lr", 0.02},
                 {"momentum", 0.95},
                 {"nesterov", 1.0},
                 {"ns_steps", 5.0},
                 {"use_muon", 1.0},
                 {"adam_lr", 3e-4},
                 {"adam_beta1", 0.9},
                 {"adam_beta2", 0.95},
                 {"adam_eps", 1e-10},
                 {"adam_weight_decay", 0.0}},
                0.0, kDecayMatrices);
}

//===----------------------------------------------------------------------===//
// The registry
//===----------------------------------------------------------------------===//

ArrayRef<OptimizerForm> optimizerForms() {
  static const OptimizerForm forms[] = {
      {{"adafactor", keysOf({{"lr", 1e-2}, {"beta2_decay", -0.8}, {"eps1", 0.0}, {"eps2", 1e-3}, {"d", 1.0}},
                            0.0, kDecayMatrices)},
       checkAdafactor,
       adafactorSlots,
       updateAdafactor},
      {{"adagrad",
        keysOf({{"lr", 1e-2}, {"lr_decay", 0.0}, {"initial_accumulator_value", 0.0}, {"eps", 1e-10}}, 0.0,
               kDecayAll)},
       checkAdagrad,
       adagradSlots,
       updateAdagrad},
      {{"adam", adamKeys(0.0, kDecayAll)}, checkAdam, adamSlots, updateAdam<false>},
      {{"adamw", adamKeys(0.01, kDecayMatrices)}, checkAdam, adamSlots, updateAdam<true>},
      {{"lion", keysOf({{"lr", 1e-4}, {"beta1", 0.9}, {"beta2", 0.99}}, 0.0, kDecayMatrices)},
       checkLion,
       lionSlots,
       updateLion},
      {{"muon", muonKeys()}, checkMuon, muonSlots, updateMuon},
      {{"rmsprop",
        keysOf({{"lr", 1e-2}, {"alpha", 0.99}, {"eps", 1e-8}, {"momentum", 0.0}, {"centered", 0.0}}, 0.0,
               kDecayAll)},
       checkRmsprop,
       rmspropSlots,
       updateRmsprop},
      {{"sgd",
        keysOf({{"lr", 1e-3}, {"momentum", 0.0}, {"dampening", 0.0}, {"nesterov", 0.0}}, 0.0, kDecayAll)},
       checkSgd,
       sgdSlots,
       updateSgd},
  };
  return forms;
}

} // namespace gpuc
