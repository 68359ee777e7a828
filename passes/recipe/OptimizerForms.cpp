//===- OptimizerForms.cpp - The registry of optimizers -----------------------===//

#include "passes/recipe/OptimizerForms.h"

#include <cmath>
#include <utility>

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

/// Builds the update of one variable, with attributes of the optimizer's numbers.
struct UpdateBuilder {
  const Optimizer &optimizer;
  OpBuilder &builder;
  Location location;
  const UpdateOperands &operands;

  FloatAttr operator()(StringRef key) const { return builder.getF64FloatAttr(optimizer.number(key)); }
  BoolAttr flag(StringRef key) const { return builder.getBoolAttr(optimizer.flag(key)); }
  UnitAttr unitIf(bool condition) const { return condition ? builder.getUnitAttr() : UnitAttr(); }
  Value slot(size_t index) const { return index < operands.slots.size() ? operands.slots[index] : Value(); }

  /// Of weight and gradient, `parts`, and results like the weight and the slots.
  template <typename Update, typename... Parts> Operation *make(Parts... parts) const {
    SmallVector<Type> types = {operands.weight.getType()};
    llvm::append_range(types, ValueRange(operands.slots).getTypes());
    return Update::create(builder, location, types, operands.weight, operands.gradient, parts...);
  }

  /// And the names of what is given in the place of attributes; null if nothing is.
  template <typename Update, typename... Parts> Operation *makeGiven(Parts... parts) const {
    return make<Update>(parts..., operands.given.empty() ? ArrayAttr()
                                                         : builder.getStrArrayAttr(operands.givenNumbers));
  }

  /// By running means of the gradient, which lie in `slots`; `more` are attributes behind the decay.
  template <typename Update, size_t slots, typename... More> Operation *makeMoments(More... more) const {
    return [&]<size_t... each>(std::index_sequence<each...>) {
      return makeGiven<Update>(slot(each)..., operands.step, operands.lr, ValueRange(operands.given),
                               (*this)("beta1"), (*this)("beta2"), (*this)("eps"), (*this)("weight_decay"),
                               more...);
    }(std::make_index_sequence<slots>());
  }
};

} // namespace

/// The keys of an optimizer by running means of the gradient, and `more`.
static SmallVector<SpecKey> momentKeys(double lr, SmallVector<SpecKey> more, double weightDecay = 0.0,
                                       double decay = kDecayAll) {
  SmallVector<SpecKey> keys = {{"lr", lr, kNotNegative},
                               {"beta1", 0.9, kBelowOne},
                               {"beta2", 0.999, kBelowOne},
                               {"eps", 1e-8, kNotNegative}};
  llvm::append_range(keys, more);
  return keysOf(std::move(keys), weightDecay, decay);
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
  UpdateBuilder update{sgd, builder, location, operands};
  return update.makeGiven<ir::SgdUpdateOp>(
      update.slot(0), operands.step, operands.lr, ValueRange(operands.given), update("momentum"),
      update("dampening"), update("weight_decay"), update.flag("nesterov"));
}

//===----------------------------------------------------------------------===//
// adam, adamw
//===----------------------------------------------------------------------===//

template <bool decoupled>
static Operation *updateAdam(const Optimizer &adam, OpBuilder &builder, Location location,
                             const UpdateOperands &operands) {
  UpdateBuilder update{adam, builder, location, operands};
  return update.makeMoments<ir::AdamUpdateOp, 3>(update.unitIf(decoupled));
}

static SmallVector<SpecKey> adamKeys(double weightDecay, double decay) {
  return momentKeys(1e-3, {{"amsgrad", 0.0, kFlag}}, weightDecay, decay);
}

//===----------------------------------------------------------------------===//
// rmsprop
//===----------------------------------------------------------------------===//

static Operation *updateRmsprop(const Optimizer &rmsprop, OpBuilder &builder, Location location,
                                const UpdateOperands &operands) {
  UpdateBuilder update{rmsprop, builder, location, operands};
  Value buffer = rmsprop.number("momentum") != 0 ? operands.slots[1] : Value();
  Value mean = rmsprop.flag("centered") ? operands.slots.back() : Value();
  return update.makeGiven<ir::RmspropUpdateOp>(operands.slots[0], buffer, mean, operands.lr,
                                               ValueRange(operands.given), update("alpha"), update("eps"),
                                               update("weight_decay"), update("momentum"));
}

//===----------------------------------------------------------------------===//
// adagrad
//===----------------------------------------------------------------------===//

static Operation *updateAdagrad(const Optimizer &adagrad, OpBuilder &builder, Location location,
                                const UpdateOperands &operands) {
  UpdateBuilder update{adagrad, builder, location, operands};
  return update.makeGiven<ir::AdagradUpdateOp>(operands.slots[0], operands.step, operands.lr,
                                               ValueRange(operands.given), update("lr_decay"), update("eps"),
                                               update("weight_decay"));
}

//===----------------------------------------------------------------------===//
// adadelta
//===----------------------------------------------------------------------===//

static const SpecRange kFromZeroToOne = {"from 0 to 1",
                                         [](double number) { return number >= 0 && number <= 1; }};

static Operation *updateAdadelta(const Optimizer &adadelta, OpBuilder &builder, Location location,
                                 const UpdateOperands &operands) {
  UpdateBuilder update{adadelta, builder, location, operands};
  return update.makeGiven<ir::AdadeltaUpdateOp>(operands.slots[0], operands.slots[1], operands.lr,
                                                ValueRange(operands.given), update("rho"), update("eps"),
                                                update("weight_decay"));
}

//===----------------------------------------------------------------------===//
// adamax
//===----------------------------------------------------------------------===//

static Operation *updateAdamax(const Optimizer &adamax, OpBuilder &builder, Location location,
                               const UpdateOperands &operands) {
  UpdateBuilder update{adamax, builder, location, operands};
  return update.makeMoments<ir::AdamaxUpdateOp, 2>();
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
  UpdateBuilder update{nadam, builder, location, operands};
  return update.makeMoments<ir::NadamUpdateOp, 3>(update("momentum_decay"),
                                                  update.unitIf(nadam.flag("decoupled_weight_decay")));
}

//===----------------------------------------------------------------------===//
// radam
//===----------------------------------------------------------------------===//

static Operation *updateRadam(const Optimizer &radam, OpBuilder &builder, Location location,
                              const UpdateOperands &operands) {
  UpdateBuilder update{radam, builder, location, operands};
  return update.makeMoments<ir::RadamUpdateOp, 2>(update.unitIf(radam.flag("decoupled_weight_decay")));
}

//===----------------------------------------------------------------------===//
// asgd
//===----------------------------------------------------------------------===//

/// What the next step goes by: in f64, whatever the weights are.
static SmallVector<OptimizerSlot> asgdSlots(RankedTensorType variable) {
  auto scalar = RankedTensorType::get({}, Float64Type::get(variable.getContext()));
  return {{"eta", scalar}, {"mu", scalar, 1}};
}

static Operation *updateAsgd(const Optimizer &asgd, OpBuilder &builder, Location location,
                             const UpdateOperands &operands) {
  UpdateBuilder update{asgd, builder, location, operands};
  return update.makeGiven<ir::AsgdUpdateOp>(update.slot(0), update.slot(1), update.slot(2), operands.step,
                                            operands.lr, ValueRange(operands.given), update("lambd"),
                                            update("alpha"), update("t0"), update("weight_decay"));
}

//===----------------------------------------------------------------------===//
// rprop
//===----------------------------------------------------------------------===//

static const SpecRange kAboveOne = {"above 1", [](double number) { return number > 1; }};
static const SpecRange kFraction = {"above 0 and below 1",
                                    [](double number) { return number > 0 && number < 1; }};

static std::string checkRprop(const Optimizer &rprop) {
  double least = rprop.number("step_size1"), most = rprop.number("step_size2");
  if (least <= most)
    return "";
  return "step_sizes are the least and the largest, but they are " + numberText(least) + " and " +
         numberText(most);
}

static Operation *updateRprop(const Optimizer &rprop, OpBuilder &builder, Location location,
                              const UpdateOperands &operands) {
  UpdateBuilder update{rprop, builder, location, operands};
  return update.makeGiven<ir::RpropUpdateOp>(
      operands.slots[0], operands.slots[1], operands.step, operands.lr, ValueRange(operands.given),
      update("eta1"), update("eta2"), update("step_size1"), update("step_size2"), update("weight_decay"));
}

//===----------------------------------------------------------------------===//
// lion
//===----------------------------------------------------------------------===//

static Operation *updateLion(const Optimizer &lion, OpBuilder &builder, Location location,
                             const UpdateOperands &operands) {
  UpdateBuilder update{lion, builder, location, operands};
  return update.make<ir::LionUpdateOp>(operands.slots[0], operands.lr, update("beta1"), update("beta2"),
                                       update("weight_decay"));
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
  UpdateBuilder update{adafactor, builder, location, operands};
  double eps1 = leastScale(adafactor, getElementTypeOrSelf(operands.weight.getType()));
  return update.make<ir::AdafactorUpdateOp>(ValueRange(operands.slots), operands.step, operands.lr,
                                            update("beta2_decay"), builder.getF64FloatAttr(eps1),
                                            update("eps2"), update("d"), update("weight_decay"));
}

//===----------------------------------------------------------------------===//
// muon
//===----------------------------------------------------------------------===//

static const SpecRange kIterations = {"a whole number from 1 to 99", [](double number) {
                                        return number >= 1 && number <= 99 && number == std::floor(number);
                                      }};

static Operation *updateMuon(const Optimizer &muon, OpBuilder &builder, Location location,
                             const UpdateOperands &operands) {
  UpdateBuilder update{muon, builder, location, operands};
  auto steps = static_cast<int64_t>(muon.number("ns_steps"));
  return update.make<ir::MuonUpdateOp>(operands.slots[0], operands.lr, update("momentum"),
                                       update.flag("nesterov"), builder.getI64IntegerAttr(steps),
                                       update("weight_decay"));
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
      {.spec = {"adadelta",
                keysOf({{"lr", 1.0, kNotNegative}, {"rho", 0.9, kFromZeroToOne}, {"eps", 1e-6, kNotNegative}},
                       0.0, kDecayAll)},
       .slots = {{"square_avg"}, {"acc_delta"}},
       .update = updateAdadelta,
       .givable = ir::AdadeltaUpdateOp::getGivable},
      {.spec = {"adafactor", keysOf({{"lr", 1e-2, kNotNegative},
                                     {"beta2_decay", -0.8, kNotPositive},
                                     {"eps1", 0.0, kNotNegative},
                                     {"eps2", 1e-3, kNotNegative},
                                     {"d", 1.0, kFromOne}},
                                    0.0, kDecayMatrices)},
       .slots = {},
       .update = updateAdafactor,
       .otherSlots = adafactorSlots,
       .needsWhole = true},
      {.spec = {"adagrad", keysOf({{"lr", 1e-2, kNotNegative},
                                   {"lr_decay", 0.0, kNotNegative},
                                   {"initial_accumulator_value", 0.0, kNotNegative},
                                   {"eps", 1e-10, kNotNegative}},
                                  0.0, kDecayAll)},
       .slots = {{"sum", /*unless0=*/"", "initial_accumulator_value"}},
       .update = updateAdagrad,
       .givable = ir::AdagradUpdateOp::getGivable},
      {.spec = {"adam", adamKeys(0.0, kDecayAll)},
       .slots = adamSlots,
       .update = updateAdam<false>,
       .givable = ir::AdamUpdateOp::getGivable},
      {.spec = {"adamax", momentKeys(2e-3, {})},
       .slots = {{"exp_avg"}, {"exp_inf"}},
       .update = updateAdamax,
       .givable = ir::AdamaxUpdateOp::getGivable},
      {.spec = {"adamw", adamKeys(0.01, kDecayMatrices)},
       .slots = adamSlots,
       .update = updateAdam<true>,
       .givable = ir::AdamUpdateOp::getGivable},
      {.spec = {"asgd",
                keysOf(
                    {{"lr", 1e-2, kNotNegative}, {"lambd", 1e-4, kNotNegative}, {"alpha", 0.75}, {"t0", 1e6}},
                    0.0, kDecayAll)},
       .slots = {{"ax"}},
       .update = updateAsgd,
       .otherSlots = asgdSlots,
       .givable = ir::AsgdUpdateOp::getGivable},
      {.spec = {"lion",
                keysOf({{"lr", 1e-4, kNotNegative}, {"beta1", 0.9, kBelowOne}, {"beta2", 0.99, kBelowOne}},
                       0.0, kDecayMatrices)},
       .slots = {{"exp_avg"}},
       .update = updateLion},
      {.spec = {"muon", muonKeys()},
       .slots = {{"momentum_buffer"}},
       .update = updateMuon,
       .needsWhole = true},
      {.spec = {"nadam", momentKeys(2e-3, {{"momentum_decay", 4e-3, kNotNegative},
                                           {"decoupled_weight_decay", 0.0, kFlag}})},
       .slots = {{"exp_avg"}, {"exp_avg_sq"}},
       .update = updateNadam,
       .otherSlots = nadamSlots,
       .givable = ir::NadamUpdateOp::getGivable},
      {.spec = {"radam", momentKeys(1e-3, {{"decoupled_weight_decay", 0.0, kFlag}})},
       .slots = {{"exp_avg"}, {"exp_avg_sq"}},
       .update = updateRadam,
       .givable = ir::RadamUpdateOp::getGivable},
      {.spec = {"rmsprop", keysOf({{"lr", 1e-2, kNotNegative},
                                   {"alpha", 0.99, kNotNegative},
                                   {"eps", 1e-8, kNotNegative},
                                   {"momentum", 0.0, kNotNegative},
                                   {"centered", 0.0, kFlag}},
                                  0.0, kDecayAll)},
       .slots = {{"square_avg"}, {"momentum_buffer", "momentum"}, {"grad_avg", "centered"}},
       .update = updateRmsprop,
       .givable = ir::RmspropUpdateOp::getGivable},
      {.spec = {"rprop", keysOf({{"lr", 1e-2, kNotNegative},
                                 {"eta1", 0.5, kFraction},
                                 {"eta2", 1.2, kAboveOne},
                                 {"step_size1", 1e-6, kNotNegative},
                                 {"step_size2", 50, kNotNegative}},
                                0.0, kDecayAll)},
       .slots = {{"prev"}, {"step_size"}},
       .update = updateRprop,
       .check = checkRprop,
       .givable = ir::RpropUpdateOp::getGivable},
      {.spec = {"sgd", keysOf({{"lr", 1e-3, kNotNegative},
                               {"momentum", 0.0, kNotNegative},
                               {"dampening", 0.0},
                               {"nesterov", 0.0, kFlag}},
                              0.0, kDecayAll)},
       .slots = {{"momentum_buffer", "momentum"}},
       .update = updateSgd,
       .check = checkSgd,
       .givable = ir::SgdUpdateOp::getGivable},
  };
  return forms;
}

} // namespace gpuc
