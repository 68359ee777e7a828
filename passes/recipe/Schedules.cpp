//===- Schedules.cpp - What becomes of the learning rate --------------------===//
//
// Each schedule is its closed form, computed in f64 from the number of updates alone: no state, so that a
// step can be resumed or repeated. PyTorch steps most of them from rate to rate, which comes to the same but
// for rounding.
//
//===----------------------------------------------------------------------===//

#include "passes/recipe/Schedules.h"

#include "dialects/gpuc/Expr.h"

#include <cmath>

namespace gpuc {

using namespace mlir;
using ir::Expr;

/// A schedule: its keys, what it refuses (in PyTorch's words where it has some; empty if nothing), and its
/// rate at step t, an f64 counted from 0.
struct ScheduleForm {
  SpecForm spec;
  std::string (*check)(const SpecNumbers &);
  Expr (*rate)(const SpecNumbers &, Expr t, double base);
};

/// Up to 2^53, above which an f64 cannot count.
static bool isPositiveInteger(double number) {
  return number >= 1 && number <= 0x1p53 && number == std::floor(number);
}

template <const char *...key> static std::string checkPositiveIntegers(const SpecNumbers &numbers) {
  std::string error;
  for (const char *name : {key...})
    if (error.empty() && !isPositiveInteger(numbers.lookup(name)))
      error =
          std::string("Expected positive integer ") + name + ", but got " + numberText(numbers.lookup(name));
  return error;
}

static constexpr char totalIters[] = "total_iters", stepSize[] = "step_size", tMax[] = "T_max", t0[] = "T_0",
                      totalSteps[] = "total_steps";

static std::string checkNothing(const SpecNumbers &) { return ""; }

//===----------------------------------------------------------------------===//
// constant, linear, polynomial: between two rates
//===----------------------------------------------------------------------===//

static std::string checkFactor(const SpecNumbers &numbers, StringRef key, StringRef name) {
  double factor = numbers.lookup(key);
  return factor >= 0 && factor <= 1
             ? ""
             : name.str() + " multiplicative factor expected to be between 0 and 1, but got " +
                   numberText(factor);
}

static std::string checkConstant(const SpecNumbers &numbers) {
  std::string error = checkFactor(numbers, "factor", "Constant");
  return error.empty() ? checkPositiveIntegers<totalIters>(numbers) : error;
}

static Expr constantRate(const SpecNumbers &numbers, Expr t, double base) {
  return select(t < numbers.lookup(totalIters), base * numbers.lookup("factor"), t.constant(base));
}

static std::string checkLinear(const SpecNumbers &numbers) {
  for (auto [key, name] : {std::pair("start_factor", "Starting"), {"end_factor", "Ending"}})
    if (std::string error = checkFactor(numbers, key, name); !error.empty())
      return error;
  return checkPositiveIntegers<totalIters>(numbers);
}

static Expr linearRate(const SpecNumbers &numbers, Expr t, double base) {
  double start = numbers.lookup("start_factor"), end = numbers.lookup("end_factor");
  double total = numbers.lookup(totalIters);
  return base * (start + (end - start) * min(t, total) / total);
}

static Expr polynomialRate(const SpecNumbers &numbers, Expr t, double base) {
  double total = numbers.lookup(totalIters);
  return base * pow(1 - min(t, total) / total, numbers.lookup("power"));
}

//===----------------------------------------------------------------------===//
// step, multi_step, exponential: by a factor now and then
//===----------------------------------------------------------------------===//

static Expr stepRate(const SpecNumbers &numbers, Expr t, double base) {
  return base * pow(numbers.lookup("gamma"), floor(t / numbers.lookup(stepSize)));
}

static Expr exponentialRate(const SpecNumbers &numbers, Expr t, double base) {
  return base * pow(numbers.lookup("gamma"), t);
}

static std::string checkMultiStep(const SpecNumbers &numbers) {
  SmallVector<double> milestones = numbersOf(numbers, "milestones");
  bool holds = llvm::all_of(milestones, isPositiveInteger);
  for (size_t i = 1; i < milestones.size(); ++i)
    holds &= milestones[i - 1] < milestones[i];
  if (holds)
    return "";
  return "Milestones should be a list of increasing integers. Got (" +
         llvm::join(llvm::map_range(milestones, [](double milestone) { return numberText(milestone); }),
                    ", ") +
         ")";
}

static Expr multiStepRate(const SpecNumbers &numbers, Expr t, double base) {
  Expr rate = t.constant(base);
  for (auto [index, milestone] : llvm::enumerate(numbersOf(numbers, "milestones")))
    rate = select(t >= milestone, base * std::pow(numbers.lookup("gamma"), index + 1.0), rate);
  return rate;
}

//===----------------------------------------------------------------------===//
// cosine, cosine_restarts [Loshchilov and Hutter 2017]
//===----------------------------------------------------------------------===//

/// From `high` at part 0 to `low` at part 1 along half a wave.
static Expr alongCosine(Expr part, double high, double low) {
  return low + (high - low) * (1 + cos(llvm::numbers::pi * part)) / 2;
}

/// Up again after T_max, as in PyTorch: a wave of the length 2 · T_max.
static Expr cosineRate(const SpecNumbers &numbers, Expr t, double base) {
  double half = numbers.lookup(tMax);
  return alongCosine(rem(t, 2 * half) / half, base, numbers.lookup("eta_min"));
}

static std::string checkRestarts(const SpecNumbers &numbers) {
  if (!isPositiveInteger(numbers.lookup("T_mult")))
    return "Expected integer T_mult >= 1, but got " + numberText(numbers.lookup("T_mult"));
  return checkPositiveIntegers<t0>(numbers);
}

/// Cycle n lasts T_0 · m^n and begins at s(n) = T_0 · (m^n - 1) / (m - 1). The logarithm that finds n may be
/// off by its last bit where a cycle begins; the nearest integer is not, and is n or n + 1.
static Expr restartsRate(const SpecNumbers &numbers, Expr t, double base) {
  double first = numbers.lookup(t0), growth = numbers.lookup("T_mult"), low = numbers.lookup("eta_min");
  if (growth == 1)
    return alongCosine(rem(t, first) / first, base, low);
  auto length = [&](Expr cycle) { return first * round(pow(growth, cycle)); };
  auto begin = [&](Expr cycle) { return (length(cycle) - first) / (growth - 1); };
  Expr nearest = round(log(t / first * (growth - 1) + 1) / std::log(growth));
  Expr cycle = select(begin(nearest) > t, nearest - 1, nearest);
  return alongCosine((t - begin(cycle)) / length(cycle), base, low);
}

//===----------------------------------------------------------------------===//
// one_cycle [Smith and Topin 2019]
//===----------------------------------------------------------------------===//

namespace {
/// From one rate to the next, which is reached at the step `end`. PyTorch's ends need not be integers.
struct Leg {
  double end, from, to;
};
} // namespace

static SmallVector<Leg> legsOf(const SpecNumbers &numbers) {
  double total = numbers.lookup(totalSteps), rise = numbers.lookup("pct_start") * total;
  double high = numbers.lookup("max_lr"), initial = high / numbers.lookup("div_factor");
  double low = initial / numbers.lookup("final_div_factor");
  if (numbers.lookup("three_phase") != 0)
    return {{rise - 1, initial, high}, {2 * rise - 2, high, initial}, {total - 1, initial, low}};
  return {{rise - 1, initial, high}, {total - 1, high, low}};
}

static std::string checkOneCycle(const SpecNumbers &numbers) {
  double part = numbers.lookup("pct_start");
  if (!(part >= 0 && part <= 1))
    return "Expected float between 0 and 1 pct_start, but got " + numberText(part);
  for (const char *key : {"div_factor", "final_div_factor"})
    if (!(numbers.lookup(key) > 0))
      return std::string("Expected positive ") + key + ", but got " + numberText(numbers.lookup(key));
  if (std::string error = checkPositiveIntegers<totalSteps>(numbers); !error.empty())
    return error;
  return legsOf(numbers).front().end == 0 ? "pct_start * total_steps = 1 gives the rise no length" : "";
}

/// The optimizer's own rate plays no part. From the step total_steps on, where PyTorch raises, the last rate
/// stays. Momentum is not cycled.
static Expr oneCycleRate(const SpecNumbers &numbers, Expr t, double) {
  bool isLinear = numbers.lookup("anneal_strategy") != 0;
  t = min(t, numbers.lookup(totalSteps) - 1);
  Expr rate;
  double begin = 0;
  for (const Leg &leg : legsOf(numbers)) {
    Expr part = (t - begin) / (leg.end - begin);
    Expr along = isLinear ? leg.from + (leg.to - leg.from) * part : alongCosine(part, leg.from, leg.to);
    rate = rate.value() ? select(t <= begin, rate, along) : along;
    begin = leg.end;
  }
  return rate;
}

//===----------------------------------------------------------------------===//
// given: by whoever runs the plan
//===----------------------------------------------------------------------===//

/// What of an optimizer's numbers may be given beside the rate.
static constexpr StringLiteral kGivenNumbers[] = {"momentum", "beta1", "beta2", "weight_decay"};

/// Never built: TrainStep.cpp reads a variable in its place.
static Expr givenRate(const SpecNumbers &, Expr t, double base) { return t.constant(base); }

static SmallVector<SpecKey> givenKeys() {
  return llvm::map_to_vector(kGivenNumbers, [](StringRef name) { return SpecKey{name, 0.0, kFlag}; });
}

//===----------------------------------------------------------------------===//
// The registry
//===----------------------------------------------------------------------===//

static ArrayRef<ScheduleForm> scheduleForms() {
  static const ScheduleForm forms[] = {
      {{"constant", {{"factor", 1.0 / 3}, {totalIters, 5.0}}}, checkConstant, constantRate},
      {{"cosine", {{tMax, {}}, {"eta_min", 0.0}}}, checkPositiveIntegers<tMax>, cosineRate},
      {{"cosine_restarts", {{t0, {}}, {"T_mult", 1.0}, {"eta_min", 0.0}}}, checkRestarts, restartsRate},
      {{"exponential", {{"gamma", {}}}}, checkNothing, exponentialRate},
      {{"given", givenKeys()}, checkNothing, givenRate},
      {{"linear", {{"start_factor", 1.0 / 3}, {"end_factor", 1.0}, {totalIters, 5.0}}},
       checkLinear,
       linearRate},
      {{"multi_step", {{.name = "milestones", .isList = true}, {"gamma", 0.1}}},
       checkMultiStep,
       multiStepRate},
      {{"one_cycle",
        {{"max_lr", {}, kNotNegative},
         {totalSteps, {}},
         {"pct_start", 0.3},
         {.name = "anneal_strategy", .otherwise = 0.0, .choices = {"cos", "linear"}},
         {"div_factor", 25.0},
         {"final_div_factor", 1e4},
         {"three_phase", 0.0, kFlag}}},
       checkOneCycle,
       oneCycleRate},
      {{"polynomial", {{totalIters, 5.0}, {"power", 1.0}}},
       checkPositiveIntegers<totalIters>,
       polynomialRate},
      {{"step", {{stepSize, {}}, {"gamma", 0.1}}}, checkPositiveIntegers<stepSize>, stepRate},
  };
  return forms;
}

/// What all of them take: how long one lasts that another follows; 0 is to the end.
static SmallVector<SpecForm> specForms() {
  return llvm::map_to_vector(scheduleForms(), [](const ScheduleForm &form) {
    SpecForm spec = form.spec;
    spec.keys.push_back({"steps", 0.0});
    return spec;
  });
}

/// What is wrong with `steps` of a schedule; empty if nothing is.
static std::string checkSteps(ir::SpecAttr spec, double steps, bool isLast) {
  bool isSaid = spec.getArguments().contains("steps");
  if (isLast)
    return isSaid ? "nothing follows it: leave out 'steps'" : "";
  if (!isSaid)
    return "another follows it: say after how many 'steps'";
  return isPositiveInteger(steps) ? "" : "Expected positive integer steps, but got " + numberText(steps);
}

FailureOr<LearningRate> LearningRate::fromSpecs(ArrayAttr specs, EmitError emitError) {
  LearningRate rate;
  int64_t begin = 0;
  size_t count = specs ? specs.size() : 0;
  for (size_t i = 0; i < count; ++i) {
    auto spec = cast<ir::SpecAttr>(specs[i]);
    FailureOr<SpecNumbers> numbers = readSpec(spec, "schedule", specForms(), emitError);
    if (failed(numbers))
      return failure();
    const ScheduleForm *form =
        llvm::find_if(scheduleForms(), [&](auto &form) { return form.spec.name == spec.getName(); });
    double steps = numbers->lookup("steps");
    std::string error = form->check(*numbers);
    if (error.empty() && form->rate == givenRate && count > 1)
      error = "whoever runs the plan gives the rate of each update: nothing goes before it or follows it";
    if (error.empty())
      error = checkSteps(spec, steps, i + 1 == count);
    if (!error.empty())
      return emitError() << "schedule " << spec.getName() << ": " << error;
    rate.phases_.push_back({form, std::move(*numbers), begin});
    begin += static_cast<int64_t>(steps);
  }
  return rate;
}

bool LearningRate::isGiven() const { return !phases_.empty() && phases_.front().form->rate == givenRate; }

SmallVector<StringRef> LearningRate::givenNumbers() const {
  if (!isGiven())
    return {};
  return llvm::filter_to_vector(ArrayRef<StringRef>(llvm::to_vector_of<StringRef>(kGivenNumbers)),
                                [&](StringRef name) { return phases_.front().numbers.lookup(name) != 0; });
}

Value LearningRate::build(OpBuilder &builder, Location location, Value completedUpdates, double base) const {
  if (phases_.empty())
    return ir::ConstantOp::create(builder, location, RankedTensorType::get({}, builder.getF64Type()), base);
  Expr updates = cast(Expr(builder, location, completedUpdates), builder.getF64Type());
  Expr rate;
  for (const Phase &phase : phases_) {
    double begin = static_cast<double>(phase.begin);
    if (phase.begin == 0)
      rate = phase.form->rate(phase.numbers, updates, base);
    else
      rate = select(updates >= begin, phase.form->rate(phase.numbers, max(updates - begin, 0), base), rate);
  }
  return rate;
}

} // namespace gpuc
