//===- OptimizerForms.cpp - The registry of optimizers -----------------------===//

#include "passes/recipe/OptimizerForms.h"

#include <cmath>

namespace gpuc {

using namespace mlir;

//===----------------------------------------------------------------------===//
// What they share
//===----------------------------------------------------------------------===//

/// `keys`, and those of all optimizers: weight decay, and what it is of if the spec does not say: optimizers
/// that add it to the gradient have it of all variables, as in PyTorch; where it is apart from the gradient,
/// of matrices. And whether the loss is to become large.
static SmallVector<SpecKey> keysOf(SmallVector<SpecKey> keys, double weightDecay, double decay) {
  keys.push_back({"weight_decay", weightDecay, kNotNegative});
  keys.push_back({.name = "decay", .otherwise = decay, .choices = {"all", "matrices"}});
  keys.push_back({kMaximize, 0.0, kFlag});
  return keys;
}

namespace {

/// Builds the attributes of an update from the optimizer's numbers.
struct Numbers {
  const Optimizer &optimizer;
  OpBuilder &builder;

  /// Names of what is given in the place of attributes; null if nothing is.
  ArrayAttr given(const UpdateOperands &operands) const {
    return operands.given.empty() ? ArrayAttr() : builder.getStrArrayAttr(operands.givenNumbers);
  }

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

//===----------------------------------------------------------------------===//
// sgd
//===----------------------------------------------------------------------===//

static std::string checkSgd(const Optimizer &sgd) {
  double momentum = sgd.number("momentum"), dampening = sgd.number("dampening");
  if (!sgd.flag("nesterov") || (momentum > 0 && dampening == 0))
    return "";
  return "nesterov needs a momentum above 0 and a dampening of 0, but they are " + numberText(momentum) +
         " and " + numberText(dampening);
}

static Operation *updateSgd(const Optimizer &sgd, OpBuilder &builder, Location location,
                            const UpdateOperands &operands) {
  Numbers number{sgd, builder};
  Value buffer = operands.slots.empty() ? Value() : operands.slots.front();
  return ir::SgdUpdateOp::create(builder, location, resultTypes(operands), operands.weight, operands.gradient,
                                 buffer, operands.step, operands.lr, operands.given, number("momentum"),
                                 number("dampening"), number("weight_decay"), number.flag("nesterov"),
                                 number.given(operands));
}

//===----------------------------------------------------------------------===//
// adam, adamw
//===----------------------------------------------------------------------===//

template <bool decoupled>
static Operation *updateAdam(const Optimizer &adam, OpBuilder &builder, Location location,
                             const UpdateOperands &operands) {
  Numbers number{adam, builder};
  Value largest = operands.slots.size() > 2 ? operands.slots[2] : Value();
  return ir::AdamUpdateOp::create(builder, location, resultTypes(operands), operands.weight,
                                  operands.gradient, operands.slots[0], operands.slots[1], largest,
                                  operands.step, operands.lr, operands.given, number("beta1"),
                                  number("beta2"), number("eps"), number("weight_decay"),
                                  decoupled ? builder.getUnitAttr() : UnitAttr(), number.given(operands));
}

static SmallVector<SpecKey> adamKeys(double weightDecay, double decay) {
  return keysOf({{"lr", 1e-3, kNotNegative},
                 {"beta1", 0.9, kBelowOne},
                 {"beta2", 0.999, kBelowOne},
                 {"eps", 1e-8, kNotNegative},
                 {"amsgrad", 0.0, kFlag}},
                weightDecay, decay);
}

//===----------------------------------------------------------------------===//
// rmsprop
//===----------------------------------------------------------------------===//

static Operation *updateRmsprop(const Optimizer &rmsprop, OpBuilder &builder, Location location,
                                const UpdateOperands &operands) {
  Numbers number{rmsprop, builder};
  Value buffer = rmsprop.number("momentum") != 0 ? operands.slots[1] : Value();
  Value mean = rmsprop.flag("centered") ? operands.slots.back() : Value();
  return ir::RmspropUpdateOp::create(builder, location, resultTypes(operands), operands.weight,
                                     operands.gradient, operands.slots[0], buffer, mean, operands.lr,
                                     operands.given, number("alpha"), number("eps"), number("weight_decay"),
                                     number("momentum"), number.given(operands));
}

//===----------------------------------------------------------------------===//
// adagrad
//===----------------------------------------------------------------------===//

static Operation *updateAdagrad(const Optimizer &adagrad, OpBuilder &builder, Location location,
                                const UpdateOperands &operands) {
  Numbers number{adagrad, builder};
  return ir::AdagradUpdateOp::create(builder, location, resultTypes(operands), operands.weight,
                                     operands.gradient, operands.slots[0], operands.step, operands.lr,
                                     operands.given, number("lr_decay"), number("eps"),
                                     number("weight_decay"), number.given(operands));
}

//===----------------------------------------------------------------------===//
// adadelta
//===----------------------------------------------------------------------===//

static const SpecRange kFromZeroToOne = {"from 0 to 1",
                                         [](double number) { return number >= 0 && number <= 1; }};

static Operation *updateAdadelta(const Optimizer &adadelta, OpBuilder &builder, Location location,
                                 const UpdateOperands &operands) {
  Numbers number{adadelta, builder};
  return ir::AdadeltaUpdateOp::create(builder, location, resultTypes(operands), operands.weight,
                                      operands.gradient, operands.slots[0], operands.slots[1], operands.lr,
                                      operands.given, number("rho"), number("eps"), number("weight_decay"),
                                      number.given(operands));
}

//===----------------------------------------------------------------------===//
// adamax
//===----------------------------------------------------------------------===//

static Operation *updateAdamax(const Optimizer &adamax, OpBuilder &builder, Location location,
                               const UpdateOperands &operands) {
  Numbers number{adamax, builder};
  return ir::AdamaxUpdateOp::create(builder, location, resultTypes(operands), operands.weight,
                                    operands.gradient, operands.slots[0], operands.slots[1], operands.step,
                                    operands.lr, operands.given, number("beta1"), number("beta2"),
                                    number("eps"), number("weight_decay"), number.given(operands));
}

//===----------------------------------------------------------------------===//
// nadam
//===----------------------------------------------------------------------===//

/// A product of numbers near 1, of which all but the last digits cancel at first: in f64, whatever the
/// weights are.
static SmallVector<OptimizerSlot> nadamSlots(RankedTensorType variable) {
  auto scalar = RankedTensorType::get({}, Float64Type::get(variable.getContext()));
  return {{"mu_product", scalar, 1}};
}

static Operation *updateNadam(const Optimizer &nadam, OpBuilder &builder, Location location,
                              const UpdateOperands &operands) {
  Numbers number{nadam, builder};
  return ir::NadamUpdateOp::create(
      builder, location, resultTypes(operands), operands.weight, operands.gradient, operands.slots[0],
      operands.slots[1], operands.slots[2], operands.step, operands.lr, operands.given, number("beta1"),
      number("beta2"), number("eps"), number("weight_decay"), number("momentum_decay"),
      nadam.flag("decoupled_weight_decay") ? builder.getUnitAttr() : UnitAttr(), number.given(operands));
}

//===----------------------------------------------------------------------===//
// radam
//===----------------------------------------------------------------------===//

static Operation *updateRadam(const Optimizer &radam, OpBuilder &builder, Location location,
                              const UpdateOperands &operands) {
  Numbers number{radam, builder};
  return ir::RadamUpdateOp::create(
      builder, location, resultTypes(operands), operands.weight, operands.gradient, operands.slots[0],
      operands.slots[1], operands.step, operands.lr, operands.given, number("beta1"), number("beta2"),
      number("eps"), number("weight_decay"),
      radam.flag("decoupled_weight_decay") ? builder.getUnitAttr() : UnitAttr(), number.given(operands));
}

//===----------------------------------------------------------------------===//
// lion
//===----------------------------------------------------------------------===//

static Operation *updateLion(const Optimizer &lion, OpBuilder &builder, Location location,
                             const UpdateOperands &operands) {
  Numbers number{lion, builder};
  return ir::LionUpdateOp::create(builder, location, resultTypes(operands), operands.weight,
                                  operands.gradient, operands.slots[0], operands.lr, number("beta1"),
                                  number("beta2"), number("weight_decay"));
}

//===----------------------------------------------------------------------===//
// adafactor
//===----------------------------------------------------------------------===//

static const SpecRange kNotPositive = {"0 or below", [](double number) { return number <= 0; }};
static const SpecRange kFromOne = {"1 or above", [](double number) { return number >= 1; }};

static SmallVector<OptimizerSlot> adafactorSlots(RankedTensorType variable) {
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

static Operation *updateAdafactor(const Optimizer &adafactor, OpBuilder &builder, Location location,
                                  const UpdateOperands &operands) {
  Numbers number{adafactor, builder};
  double eps1 = leastScale(adafactor, getElementTypeOrSelf(operands.weight.getType()));
  return ir::AdafactorUpdateOp::create(builder, location, resultTypes(operands), operands.weight,
                                       operands.gradient, operands.slots, operands.step, operands.lr,
                                       number("beta2_decay"), builder.getF64FloatAttr(eps1), number("eps2"),
                                       number("d"), number("weight_decay"));
}

//===----------------------------------------------------------------------===//
// muon
//===----------------------------------------------------------------------===//

static const SpecRange kIterations = {"a whole number from 1 to 99", [](double number) {
                                        return number >= 1 && number <= 99 && number == std::floor(number);
                                      }};

static Operation *updateMuon(const Optimizer &muon, OpBuilder &builder, Location location,
                             const UpdateOperands &operands) {
  Numbers number{muon, builder};
  auto steps = static_cast<int64_t>(muon.number("ns_steps"));
  return ir::MuonUpdateOp::create(builder, location, resultTypes(operands), operands.weight,
                                  operands.gradient, operands.slots[0], operands.lr, number("momentum"),
                                  number.flag("nesterov"), builder.getI64IntegerAttr(steps),
                                  number("weight_decay"));
}

/// Defaults of both parts are the author's. `use_muon` is for groups: embeddings and heads are matrices, but
/// better left to adam.
static SmallVector<SpecKey> muonKeys() {
  return keysOf({{"lr", 0.02, kNotNegative},
                 {"momentum", 0.95, kBelowOne},
                 {"nesterov", 1.0, kFlag},
                 {"ns_steps", 5.0, kIterations},
                 {"use_muon", 1.0, kFlag},
                 {"adam_lr", 3e-4, kNotNegative},
                 {"adam_beta1", 0.9, kBelowOne},
                 {"adam_beta2", 0.95, kBelowOne},
                 {"adam_eps", 1e-10, kNotNegative},
                 {"adam_weight_decay", 0.0, kNotNegative}},
                0.0, kDecayMatrices);
}

//===----------------------------------------------------------------------===//
// The registry
//===----------------------------------------------------------------------===//

ArrayRef<OptimizerForm> optimizerForms() {
  const SmallVector<SlotForm> adamSlots = {{"exp_avg"}, {"exp_avg_sq"}, {"max_exp_avg_sq", "amsgrad"}};
  static const OptimizerForm forms[] = {
      {{"adadelta",
        keysOf({{"lr", 1.0, kNotNegative}, {"rho", 0.9, kFromZeroToOne}, {"eps", 1e-6, kNotNegative}}, 0.0,
               kDecayAll)},
       {{"square_avg"}, {"acc_delta"}},
       updateAdadelta,
       .givable = ir::AdadeltaUpdateOp::getGivable},
      {{"adafactor", keysOf({{"lr", 1e-2, kNotNegative},
                             {"beta2_decay", -0.8, kNotPositive},
                             {"eps1", 0.0, kNotNegative},
                             {"eps2", 1e-3, kNotNegative},
                             {"d", 1.0, kFromOne}},
                            0.0, kDecayMatrices)},
       {},
       updateAdafactor,
       /*check=*/nullptr,
       adafactorSlots,
       /*needsWhole=*/true},
      {{"adagrad", keysOf({{"lr", 1e-2, kNotNegative},
                           {"lr_decay", 0.0, kNotNegative},
                           {"initial_accumulator_value", 0.0, kNotNegative},
                           {"eps", 1e-10, kNotNegative}},
                          0.0, kDecayAll)},
       {{"sum", /*unless0=*/"", "initial_accumulator_value"}},
       updateAdagrad,
       .givable = ir::AdagradUpdateOp::getGivable},
      {{"adam", adamKeys(0.0, kDecayAll)},
       adamSlots,
       updateAdam<false>,
       .givable = ir::AdamUpdateOp::getGivable},
      {{"adamax", keysOf({{"lr", 2e-3, kNotNegative},
                          {"beta1", 0.9, kBelowOne},
                          {"beta2", 0.999, kBelowOne},
                          {"eps", 1e-8, kNotNegative}},
                         0.0, kDecayAll)},
       {{"exp_avg"}, {"exp_inf"}},
       updateAdamax,
       .givable = ir::AdamaxUpdateOp::getGivable},
      {{"adamw", adamKeys(0.01, kDecayMatrices)},
       adamSlots,
       updateAdam<true>,
       .givable = ir::AdamUpdateOp::getGivable},
      {{"lion", keysOf({{"lr", 1e-4, kNotNegative}, {"beta1", 0.9, kBelowOne}, {"beta2", 0.99, kBelowOne}},
                       0.0, kDecayMatrices)},
       {{"exp_avg"}},
       updateLion},
      {{"muon", muonKeys()},
       {{"momentum_buffer"}},
       updateMuon,
       /*check=*/nullptr,
       /*otherSlots=*/nullptr,
       /*needsWhole=*/true},
      {{"nadam", keysOf({{"lr", 2e-3, kNotNegative},
                         {"beta1", 0.9, kBelowOne},
                         {"beta2", 0.999, kBelowOne},
                         {"eps", 1e-8, kNotNegative},
                         {"momentum_decay", 4e-3, kNotNegative},
                         {"decoupled_weight_decay", 0.0, kFlag}},
                        0.0, kDecayAll)},
       {{"exp_avg"}, {"exp_avg_sq"}},
       updateNadam,
       /*check=*/nullptr,
       nadamSlots,
       .givable = ir::NadamUpdateOp::getGivable},
      {{"radam", keysOf({{"lr", 1e-3, kNotNegative},
                         {"beta1", 0.9, kBelowOne},
                         {"beta2", 0.999, kBelowOne},
                         {"eps", 1e-8, kNotNegative},
                         {"decoupled_weight_decay", 0.0, kFlag}},
                        0.0, kDecayAll)},
       {{"exp_avg"}, {"exp_avg_sq"}},
       updateRadam,
       .givable = ir::RadamUpdateOp::getGivable},
      {{"rmsprop", keysOf({{"lr", 1e-2, kNotNegative},
                           {"alpha", 0.99, kNotNegative},
                           {"eps", 1e-8, kNotNegative},
                           {"momentum", 0.0, kNotNegative},
                           {"centered", 0.0, kFlag}},
                          0.0, kDecayAll)},
       {{"square_avg"}, {"momentum_buffer", "momentum"}, {"grad_avg", "centered"}},
       updateRmsprop,
       .givable = ir::RmspropUpdateOp::getGivable},
      {{"sgd", keysOf({{"lr", 1e-3, kNotNegative},
                       {"momentum", 0.0, kNotNegative},
                       {"dampening", 0.0},
                       {"nesterov", 0.0, kFlag}},
                      0.0, kDecayAll)},
       {{"momentum_buffer", "momentum"}},
       updateSgd,
       checkSgd,
       .givable = ir::SgdUpdateOp::getGivable},
  };
  return forms;
}

} // namespace gpuc
