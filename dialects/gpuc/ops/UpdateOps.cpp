//===- UpdateOps.cpp - Verifiers and costs of optimizer updates -------------===//

#include "dialects/gpuc/NumberText.h"
#include "dialects/gpuc/TypeChecks.h"

using namespace mlir;

namespace gpuc::ir {

using NamedValue = std::pair<StringRef, Value>;
using NamedNumber = std::pair<StringRef, APFloat>;

/// `label` wants the tensors that there are to be of `type`.
static LogicalResult checkTensors(Operation *op, StringRef label, Type type, ArrayRef<NamedValue> tensors) {
  for (auto [name, tensor] : tensors)
    if (tensor && failed(checkType(op, label, name, tensor.getType(), type)))
      return failure();
  return success();
}

static LogicalResult checkScalars(Operation *op, StringRef label, ArrayRef<NamedValue> tensors) {
  for (auto [name, tensor] : tensors)
    if (failed(checkScalar(op, label, name, tensor)))
      return failure();
  return success();
}

/// `label` wants numbers of at least 0; NaN is none.
static LogicalResult checkNotNegative(Operation *op, StringRef label, ArrayRef<NamedNumber> numbers) {
  for (const auto &[name, number] : numbers)
    if (failed(checkNotNegative(op, label, name, number)))
      return failure();
  return success();
}

/// `label` wants rates at which a running mean forgets.
static LogicalResult checkRates(Operation *op, StringRef label, ArrayRef<NamedNumber> rates) {
  for (const auto &[name, rate] : rates)
    if (!(rate.convertToDouble() >= 0 && rate.convertToDouble() < 1))
      return op->emitOpError() << name << " must lie in [0, 1), but is " << numberText(rate.convertToDouble())
                               << " [" << label << "]";
  return success();
}

static LogicalResult checkResults(Operation *op, StringRef label, ArrayRef<Type> expected) {
  if (TypeRange(expected) == op->getResultTypes())
    return success();
  return op->emitOpError() << "must return (" << expected << "), but returns (" << op->getResultTypes()
                           << ") [" << label << "]";
}

/// `label` wants scalars in place of numbers that may be given, each once.
template <typename Update> static LogicalResult checkGiven(Update op, StringRef label) {
  ArrayRef<StringRef> known = Update::getGivable();
  SmallVector<StringRef> names;
  if (std::optional<ArrayAttr> given = op.getGivenNumbers())
    llvm::append_range(names, given->template getAsValueRange<StringAttr>());
  if (names.size() != op.getGiven().size())
    return op.emitOpError() << "is given " << op.getGiven().size() << " scalars for " << names.size()
                            << " given_numbers [" << label << "]";
  for (auto [index, name] : llvm::enumerate(names)) {
    if (!llvm::is_contained(known, name))
      return op.emitOpError() << "given_numbers name '" << name << "', but known are "
                              << llvm::join(known, ", ") << " [" << label << "]";
    if (llvm::is_contained(ArrayRef(names).take_front(index), name))
      return op.emitOpError() << "given_numbers name '" << name << "' twice [" << label << "]";
    if (failed(checkScalar(op, label, name, op.getGiven()[index])))
      return failure();
  }
  return success();
}

/// `label` wants a weight whose elements can be counted.
static LogicalResult checkCountable(Operation *op, StringRef label, Value weight) {
  RankedTensorType type = tensorType(weight);
  if (type.hasStaticShape() && !llvm::is_contained(type.getShape(), 0))
    return success();
  return op->emitOpError() << "weight " << type << " must be of static shape and have elements [" << label
                           << "]";
}

/// What updates by running means of the gradient have in common, each constraint under the same number:
/// tensors like the weight (C1), scalars (C2), rates of two means (C3) and numbers of at least 0 (C4); and
/// what may be given, under `given`.
template <typename Update>
static LogicalResult checkMoments(Update op, StringRef given, ArrayRef<NamedValue> moments,
                                  ArrayRef<NamedValue> scalars = {}, ArrayRef<NamedNumber> numbers = {}) {
  const std::string name = op->getName().stripDialect().str() + "_";
  SmallVector<NamedValue> tensors = {{"gradient", op.getGradient()}, {"new weight", op.getNewWeight()}};
  llvm::append_range(tensors, moments);
  SmallVector<NamedValue> allScalars(scalars);
  allScalars.append({{"step", op.getStep()}, {"lr", op.getLr()}});
  SmallVector<NamedNumber> allNumbers = {{"eps", op.getEps()}, {"weight_decay", op.getWeightDecay()}};
  llvm::append_range(allNumbers, numbers);
  return success(
      succeeded(checkTensors(op, name + "C1", op.getWeight().getType(), tensors)) &&
      succeeded(checkScalars(op, name + "C2", allScalars)) &&
      succeeded(checkRates(op, name + "C3", {{"beta1", op.getBeta1()}, {"beta2", op.getBeta2()}})) &&
      succeeded(checkGiven(op, name + given.str())) &&
      succeeded(checkNotNegative(op, name + "C4", allNumbers)));
}

//===----------------------------------------------------------------------===//
// Numbers that may be given
//===----------------------------------------------------------------------===//

static constexpr StringRef kMomentumAndDecay[] = {"momentum", "weight_decay"};
static constexpr StringRef kBetasAndDecay[] = {"beta1", "beta2", "weight_decay"};

ArrayRef<StringRef> SgdUpdateOp::getGivable() { return kMomentumAndDecay; }
ArrayRef<StringRef> AdamUpdateOp::getGivable() { return kBetasAndDecay; }
ArrayRef<StringRef> RmspropUpdateOp::getGivable() { return kMomentumAndDecay; }
ArrayRef<StringRef> AdagradUpdateOp::getGivable() { return ArrayRef(kMomentumAndDecay).drop_front(); }
ArrayRef<StringRef> AdadeltaUpdateOp::getGivable() { return ArrayRef(kMomentumAndDecay).drop_front(); }
ArrayRef<StringRef> AdamaxUpdateOp::getGivable() { return kBetasAndDecay; }
ArrayRef<StringRef> NadamUpdateOp::getGivable() { return kBetasAndDecay; }
ArrayRef<StringRef> RadamUpdateOp::getGivable() { return kBetasAndDecay; }
ArrayRef<StringRef> AsgdUpdateOp::getGivable() { return ArrayRef(kMomentumAndDecay).drop_front(); }
ArrayRef<StringRef> RpropUpdateOp::getGivable() { return ArrayRef(kMomentumAndDecay).drop_front(); }

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

LogicalResult SgdUpdateOp::verify() {
  if (failed(checkNeeded<SgdUpdateOp>(getLoc(), *this, {0, 1, 3, 4})))
    return failure();
  Type weight = getWeight().getType();
  double momentum = getMomentum().convertToDouble(), dampening = getDampening().convertToDouble();
  if (failed(checkTensors(*this, "sgd_update_C1", weight,
                          {{"gradient", getGradient()}, {"buffer", getMomentumBuffer()}})) ||
      failed(checkScalars(*this, "sgd_update_C2", {{"step", getStep()}, {"lr", getLr()}})))
    return failure();
  if ((momentum != 0) != !!getMomentumBuffer())
    return emitOpError() << "takes a buffer just when momentum is not 0, but momentum is "
                         << numberText(momentum) << " [sgd_update_C3]";
  if (getNesterov() && (momentum == 0 || dampening != 0))
    return emitOpError() << "nesterov needs momentum and no dampening, but momentum is "
                         << numberText(momentum) << " and dampening " << numberText(dampening)
                         << " [sgd_update_C4]";
  if (!(momentum >= 0 && getWeightDecay().convertToDouble() >= 0) || getDampening().isNaN())
    return emitOpError()
           << "momentum and weight_decay must not be negative and dampening a number, but they are "
           << numberText(momentum) << ", " << numberText(getWeightDecay().convertToDouble()) << " and "
           << numberText(dampening) << " [sgd_update_C6]";
  if (failed(checkGiven(*this, "sgd_update_C7")))
    return failure();
  return checkResults(*this, "sgd_update_C5", SmallVector<Type>(getMomentumBuffer() ? 2 : 1, weight));
}

LogicalResult AdamUpdateOp::verify() {
  if (failed(checkNeeded<AdamUpdateOp>(getLoc(), *this, {0, 1, 2, 3, 5, 6})) ||
      failed(checkMoments(*this, "C6",
                          {{"first moment", getExpAvg()},
                           {"second moment", getExpAvgSq()},
                           {"largest second moment", getMaxExpAvgSq()},
                           {"new first moment", getNewExpAvg()},
                           {"new second moment", getNewExpAvgSq()},
                           {"new largest second moment", getNewMaxExpAvgSq()}})))
    return failure();
  if (!getMaxExpAvgSq() == !getNewMaxExpAvgSq())
    return success();
  return emitOpError() << "returns a new largest second moment just when it is given the old one, but "
                       << (getMaxExpAvgSq() ? "does not return it" : "is given none") << " [adam_update_C5]";
}

LogicalResult RmspropUpdateOp::verify() {
  if (failed(checkNeeded<RmspropUpdateOp>(getLoc(), *this, {0, 1, 2, 5})))
    return failure();
  Type weight = getWeight().getType();
  if (failed(checkTensors(*this, "rmsprop_update_C1", weight,
                          {{"gradient", getGradient()},
                           {"square_avg", getSquareAvg()},
                           {"buffer", getMomentumBuffer()},
                           {"grad_avg", getGradAvg()}})) ||
      failed(checkScalars(*this, "rmsprop_update_C2", {{"lr", getLr()}})) ||
      failed(checkNotNegative(*this, "rmsprop_update_C5",
                              {{"alpha", getAlpha()},
                               {"eps", getEps()},
                               {"weight_decay", getWeightDecay()},
                               {"momentum", getMomentum()}})))
    return failure();
  if (getMomentum().isZero() == !!getMomentumBuffer())
    return emitOpError() << "takes a buffer just when momentum is not 0, but momentum is "
                         << numberText(getMomentum().convertToDouble()) << " [rmsprop_update_C3]";
  if (failed(checkGiven(*this, "rmsprop_update_C6")))
    return failure();
  size_t count = 2 + !!getMomentumBuffer() + !!getGradAvg();
  return checkResults(*this, "rmsprop_update_C4", SmallVector<Type>(count, weight));
}

LogicalResult AdagradUpdateOp::verify() {
  if (failed(checkTensors(*this, "adagrad_update_C1", getWeight().getType(),
                          {{"gradient", getGradient()},
                           {"sum", getSum()},
                           {"new weight", getNewWeight()},
                           {"new sum", getNewSum()}})) ||
      failed(checkGiven(*this, "adagrad_update_C4")) ||
      failed(checkScalars(*this, "adagrad_update_C2", {{"step", getStep()}, {"lr", getLr()}})))
    return failure();
  return checkNotNegative(
      *this, "adagrad_update_C3",
      {{"lr_decay", getLrDecay()}, {"eps", getEps()}, {"weight_decay", getWeightDecay()}});
}

LogicalResult AdadeltaUpdateOp::verify() {
  if (failed(checkTensors(*this, "adadelta_update_C1", getWeight().getType(),
                          {{"gradient", getGradient()},
                           {"square_avg", getSquareAvg()},
                           {"acc_delta", getAccDelta()},
                           {"new weight", getNewWeight()},
                           {"new square_avg", getNewSquareAvg()},
                           {"new acc_delta", getNewAccDelta()}})) ||
      failed(checkScalars(*this, "adadelta_update_C2", {{"lr", getLr()}})) ||
      failed(checkGiven(*this, "adadelta_update_C5")) ||
      failed(checkNotNegative(*this, "adadelta_update_C4",
                              {{"eps", getEps()}, {"weight_decay", getWeightDecay()}})))
    return failure();
  double rho = getRho().convertToDouble();
  if (rho >= 0 && rho <= 1)
    return success();
  return emitOpError() << "rho must lie in [0, 1], but is " << numberText(rho) << " [adadelta_update_C3]";
}

LogicalResult AdamaxUpdateOp::verify() {
  return checkMoments(*this, "C5",
                      {{"exp_avg", getExpAvg()},
                       {"exp_inf", getExpInf()},
                       {"new exp_avg", getNewExpAvg()},
                       {"new exp_inf", getNewExpInf()}});
}

LogicalResult NadamUpdateOp::verify() {
  if (failed(checkMoments(*this, "C5",
                          {{"first moment", getExpAvg()},
                           {"second moment", getExpAvgSq()},
                           {"new first moment", getNewExpAvg()},
                           {"new second moment", getNewExpAvgSq()}},
                          {{"mu_product", getMuProduct()}}, {{"momentum_decay", getMomentumDecay()}})))
    return failure();
  return checkTensors(*this, "nadam_update_C2", getMuProduct().getType(),
                      {{"new mu_product", getNewMuProduct()}});
}

LogicalResult RadamUpdateOp::verify() {
  return checkMoments(*this, "C5",
                      {{"first moment", getExpAvg()},
                       {"second moment", getExpAvgSq()},
                       {"new first moment", getNewExpAvg()},
                       {"new second moment", getNewExpAvgSq()}});
}

LogicalResult RpropUpdateOp::verify() {
  if (failed(checkTensors(*this, "rprop_update_C1", getWeight().getType(),
                          {{"gradient", getGradient()},
                           {"prev", getPrev()},
                           {"step_size", getStepSize()},
                           {"new weight", getNewWeight()},
                           {"new prev", getNewPrev()},
                           {"new step_size", getNewStepSize()}})) ||
      failed(checkScalars(*this, "rprop_update_C2", {{"step", getStep()}, {"lr", getLr()}})) ||
      failed(checkGiven(*this, "rprop_update_C5")) ||
      failed(checkNotNegative(*this, "rprop_update_C4",
                              {{"step_size_min", getStepSizeMin()}, {"weight_decay", getWeightDecay()}})))
    return failure();
  double minus = getEtaMinus().convertToDouble(), plus = getEtaPlus().convertToDouble();
  if (!(minus > 0 && minus < 1 && plus > 1))
    return emitOpError() << "eta_minus must lie in (0, 1) and eta_plus above 1, but they are "
                         << numberText(minus) << " and " << numberText(plus) << " [rprop_update_C3]";
  double least = getStepSizeMin().convertToDouble(), most = getStepSizeMax().convertToDouble();
  if (least <= most)
    return success();
  return emitOpError() << "step_size_min must not be above step_size_max, but they are " << numberText(least)
                       << " and " << numberText(most) << " [rprop_update_C4]";
}

LogicalResult AsgdUpdateOp::verify() {
  if (failed(checkTensors(*this, "asgd_update_C1", getWeight().getType(),
                          {{"gradient", getGradient()},
                           {"ax", getAx()},
                           {"new weight", getNewWeight()},
                           {"new ax", getNewAx()}})) ||
      failed(checkScalars(*this, "asgd_update_C2",
                          {{"eta", getEta()}, {"mu", getMu()}, {"step", getStep()}, {"lr", getLr()}})) ||
      failed(checkTensors(*this, "asgd_update_C2", getEta().getType(), {{"new eta", getNewEta()}})) ||
      failed(checkTensors(*this, "asgd_update_C2", getMu().getType(), {{"new mu", getNewMu()}})) ||
      failed(checkGiven(*this, "asgd_update_C4")) ||
      failed(checkNotNegative(*this, "asgd_update_C3",
                              {{"lambd", getLambd()}, {"weight_decay", getWeightDecay()}})))
    return failure();
  if (!getAlpha().isNaN() && !getT0().isNaN())
    return success();
  return emitOpError() << "alpha and t0 must be numbers, but are " << numberText(getAlpha().convertToDouble())
                       << " and " << numberText(getT0().convertToDouble()) << " [asgd_update_C3]";
}

LogicalResult LionUpdateOp::verify() {
  if (failed(checkTensors(*this, "lion_update_C1", getWeight().getType(),
                          {{"gradient", getGradient()},
                           {"exp_avg", getExpAvg()},
                           {"new weight", getNewWeight()},
                           {"new exp_avg", getNewExpAvg()}})) ||
      failed(checkScalars(*this, "lion_update_C2", {{"lr", getLr()}})) ||
      failed(checkRates(*this, "lion_update_C3", {{"beta1", getBeta1()}, {"beta2", getBeta2()}})))
    return failure();
  return checkNotNegative(*this, "lion_update_C4", {{"weight_decay", getWeightDecay()}});
}

SmallVector<Type> AdafactorUpdateOp::getVarianceTypes(RankedTensorType weight) {
  if (weight.getRank() < 2)
    return {weight};
  Shape rows(weight.getShape()), columns(weight.getShape());
  rows[weight.getRank() - 1] = 1;
  columns[weight.getRank() - 2] = 1;
  return {weight.clone(rows), weight.clone(columns)};
}

LogicalResult AdafactorUpdateOp::verify() {
  RankedTensorType weight = tensorType(getWeight());
  if (failed(checkTensors(*this, "adafactor_update_C1", weight, {{"gradient", getGradient()}})) ||
      failed(checkScalars(*this, "adafactor_update_C2", {{"step", getStep()}, {"lr", getLr()}})) ||
      failed(checkCountable(*this, "adafactor_update_C5", getWeight())) ||
      failed(
          checkNotNegative(*this, "adafactor_update_C6",
                           {{"eps1", getEps1()}, {"eps2", getEps2()}, {"weight_decay", getWeightDecay()}})))
    return failure();
  SmallVector<Type> state = getVarianceTypes(weight);
  if (TypeRange(state) != getVariances().getTypes())
    return emitOpError() << "the variances of a weight " << weight << " are (" << state
                         << "), but given are (" << getVariances().getTypes() << ") [adafactor_update_C3]";
  if (!(getBeta2Decay().convertToDouble() <= 0 && getD().convertToDouble() >= 1))
    return emitOpError() << "beta2_decay must not be positive and d at least 1, but they are "
                         << numberText(getBeta2Decay().convertToDouble()) << " and "
                         << numberText(getD().convertToDouble()) << " [adafactor_update_C6]";
  state.insert(state.begin(), weight);
  return checkResults(*this, "adafactor_update_C4", state);
}

LogicalResult MuonUpdateOp::verify() {
  if (failed(checkTensors(*this, "muon_update_C1", getWeight().getType(),
                          {{"gradient", getGradient()},
                           {"buffer", getMomentumBuffer()},
                           {"new weight", getNewWeight()},
                           {"new buffer", getNewMomentumBuffer()}})) ||
      failed(checkScalars(*this, "muon_update_C2", {{"lr", getLr()}})) ||
      failed(checkCountable(*this, "muon_update_C3", getWeight())) ||
      failed(checkRates(*this, "muon_update_C5", {{"momentum", getMomentum()}})) ||
      failed(checkNotNegative(*this, "muon_update_C5", {{"weight_decay", getWeightDecay()}})))
    return failure();
  if (tensorType(getWeight()).getRank() < 2)
    return emitOpError() << "weight must be of rank 2 at least, but is " << getWeight().getType()
                         << " [muon_update_C3]";
  auto steps = static_cast<int64_t>(getNsSteps());
  if (steps >= 1 && steps <= 99)
    return success();
  return emitOpError() << "ns_steps must lie in [1, 99], but is " << steps << " [muon_update_C4]";
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// So many for each element, and two for a decay that is part of the gradient.
template <typename Update> static int64_t flopsOf(Update op, int64_t perElement) {
  return (perElement + (op.getWeightDecay().isZero() ? 0 : 2)) * elementCount(op.getWeight().getType());
}

/// Weight decay (2), momentum (3), nesterov (2) and the step itself (2), for each element.
int64_t SgdUpdateOp::getFlops() {
  return flopsOf(*this, 2 + (getMomentumBuffer() ? 3 : 0) + (getNesterov() ? 2 : 0));
}

/// Both moments (3 and 4), the denominator (3), the step (3), weight decay (2) and the larger moment (1), for
/// each element.
int64_t AdamUpdateOp::getFlops() { return flopsOf(*this, 13 + (getMaxExpAvgSq() ? 1 : 0)); }

/// The mean square (4), its root and the quotient (3), the step (2), weight decay (2), centering (5) and
/// momentum (2), for each element.
int64_t RmspropUpdateOp::getFlops() {
  return flopsOf(*this, 9 + (getGradAvg() ? 5 : 0) + (getMomentumBuffer() ? 2 : 0));
}

/// The sum of squares (2), its root and the quotient (3), the step (2) and weight decay (2), for each
/// element.
int64_t AdagradUpdateOp::getFlops() { return flopsOf(*this, 7); }

/// The mean squares (4 each), two roots, the quotient and its product (6), the step (2) and weight decay (2),
/// for each element.
int64_t AdadeltaUpdateOp::getFlops() { return flopsOf(*this, 16); }

/// The mean (3), the norm (4), the step (3) and weight decay (2), for each element.
int64_t AdamaxUpdateOp::getFlops() { return flopsOf(*this, 10); }

/// Both moments (3 and 4), the denominator (3), the step (6) and weight decay (2), for each element.
int64_t NadamUpdateOp::getFlops() { return flopsOf(*this, 16); }

/// Both moments (3 and 4), the denominator (2), the choice (2), the step (3) and weight decay (2), for each
/// element.
int64_t RadamUpdateOp::getFlops() { return flopsOf(*this, 14); }

/// The product and what it chooses (5), the size of the step (3), the step (3) and weight decay (2), for each
/// element.
int64_t RpropUpdateOp::getFlops() { return flopsOf(*this, 11); }

/// What is left of the weight and the step (3), its mean (4) and weight decay (2), for each element.
int64_t AsgdUpdateOp::getFlops() { return flopsOf(*this, 7); }

/// Two means (3 each), the sign (1), the step (2) and weight decay (1), for each element.
int64_t LionUpdateOp::getFlops() {
  return (9 + (getWeightDecay().isZero() ? 0 : 1)) * elementCount(getWeight().getType());
}

/// Mean squares of the weight (2), of the gradient (3) and of the direction (2), its estimate (2), bound,
/// root and quotient (3), the step (2) and weight decay (1), for each element.
int64_t AdafactorUpdateOp::getFlops() {
  return (14 + (getWeightDecay().isZero() ? 0 : 1)) * elementCount(getWeight().getType());
}

/// With s rows or columns, whichever are fewer, and n elements: three products of an iteration (2ns, 2s³,
/// 2ns) and its sums (3s² and 2n); momentum (3), nesterov (3), the norm (3), the step (2) and weight decay
/// (1) for each element.
int64_t MuonUpdateOp::getFlops() {
  int64_t elements = elementCount(getWeight().getType()), rows = shapeOf(getWeight()).front();
  int64_t fewer = std::min(rows, elements / rows);
  int64_t iteration = 4 * elements * fewer + 2 * fewer * fewer * fewer + 3 * fewer * fewer + 2 * elements;
  int64_t perElement = 8 + (getNesterov() ? 3 : 0) + (getWeightDecay().isZero() ? 0 : 1);
  return perElement * elements + static_cast<int64_t>(getNsSteps()) * iteration;
}

} // namespace gpuc::ir
