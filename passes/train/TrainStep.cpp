//===- TrainStep.cpp - What a recipe does with gradients ---------------------===//
//
// In this order, whatever the order of the recipe's entries or the command line's flags:
//
//   1. forward and backward pass, and of these the gradients of the batch's mean (MeanGradients.h)
//   2. clip, each element by its value, then all together by their norm
//   3. whether the update is made: gradients of a scaled loss are finite, the step no outlier
//   4. the counters, and with them the learning rate
//   5. update each variable, by the optimizer with the numbers of its group, then the running mean of it;
//      where the update is not made, they keep their values
//   6. the next loss scale
//
// Nothing is divided or clipped more than once, and never in place of one another: it is one step.
//
//===----------------------------------------------------------------------===//

#include "passes/train/TrainStep.h"

#include "passes/base/Decisions.h"
#include "passes/batch/Parts.h"
#include "passes/recipe/LossScale.h"
#include "passes/recipe/Outliers.h"
#include "passes/recipe/Schedules.h"
#include "passes/recipe/WeightMeans.h"
#include "passes/train/MeanGradients.h"
#include "passes/train/Owners.h"
#include "passes/train/Shards.h"

#include <map>

namespace gpuc {

using namespace mlir;
using ir::Expr;

namespace {

class TrainStep {
public:
  TrainStep(ModuleOp module, ir::RecipeOp recipe)
      : module_(module), recipe_(recipe), entry_(module, "train_step"),
        ops_(entry_.builder(), NameLoc::get(entry_.builder().getStringAttr("update"))) {}

  LogicalResult build(func::FuncOp gradients, ir::VariableOp step) {
    if (failed(readLossScale()) || failed(readRecipe(trainedBy(gradients))))
      return failure();
    if (recipe_.getShard() && failed(shareOutTrained(gradients)))
      return failure();
    FailureOr<MeanGradients> mean =
        buildMeanGradients(entry_, ops_.location(), recipe_, gradients, lossScale_);
    if (failed(mean))
      return failure();
    mean_ = std::move(*mean);
    if (recipe_.getAccumulate().value_or(1) > 1)
      waitsForAll_.push_back("accumulate");
    leaveOutBroken();
    clipValues();
    Value norm = buildNorm();
    clipNorm(norm);
    if (failed(leaveOutOutliers(norm)) || failed(countStep(step)))
      return failure();
    Value lr = rateOf(groups_.optimizer(), /*group=*/0);
    for (Trained &trained : mean_.trained)
      update(trained);
    if (!lr || !soundRates_ || failed(checkGivenNumbers()))
      return failure();
    if (keep_)
      assignIfKept();
    if (lossScale_)
      lossScale_->buildUpdate(ops_, ops_.at(mean_.scale), allFinite_);

    entry_.addResult("loss_sum", mean_.loss);
    entry_.addResult("count", mean_.count);
    entry_.addResult("lr", lr);
    entry_.addResult("grad_norm", norm);
    if (lossScale_)
      entry_.addResult("loss_scale", mean_.scale);
    if (keep_)
      entry_.addResult("skipped", !ops_.at(keep_));
    entry_.finish();
    if (!waitsForAll_.empty())
      module_->setAttr(kWholeGradientsAttr, entry_.builder().getStrArrayAttr(waitsForAll_));
    return success();
  }

private:
  /// At the location of a variable: its kernels are named after it.
  StepBuilder at(ir::VariableOp variable) {
    return {entry_.builder(), NameLoc::get(entry_.builder().getStringAttr(variable.getFirstName()))};
  }

  /// What the recipe says of updates.
  LogicalResult readRecipe(ArrayRef<ir::VariableOp> variables) {
    FailureOr<ParameterGroups> groups = ParameterGroups::fromRecipe(recipe_, variables);
    if (failed(groups))
      return failure();
    groups_ = std::move(*groups);
    if (!recipe_.getEma())
      return success();
    FailureOr<WeightMeans> means =
        WeightMeans::fromSpec(*recipe_.getEma(), [&] { return recipe_.emitOpError(); });
    if (succeeded(means))
      means_ = *means;
    return means;
  }

  //===--------------------------------------------------------------------===//
  // Ranks that share out what is trained
  //===--------------------------------------------------------------------===//

  /// What an optimizer needs as a whole, ranks own where there is enough that is alike; of the rest it needs
  /// the whole gradient.
  LogicalResult shareOutTrained(func::FuncOp gradients) {
    Builder &attributes = entry_.builder();
    const int64_t ranks = *recipe_.getWorldSize();
    const SmallVector<ir::VariableOp> trained = trainedBy(gradients);
    const auto owned = groupForOwners(trained, groups_, ranks);
    bool isAnyShared = !owned.empty();
    for (ArrayRef<unsigned> members : owned)
      giveToOwners(gradients, trained, members);
    for (auto [index, variable] : llvm::enumerate(trained)) {
      if (gradients.getResultAttr(kFirstGradient + index, kOwnersAttr) || !shareOut(variable, ranks))
        continue;
      isAnyShared = true;
      if (!groups_.optimizerOf(variable).needsWhole())
        gradients.setResultAttr(kFirstGradient + index, kScatterAttr, attributes.getI64IntegerAttr(ranks));
    }
    if (!isAnyShared)
      return recipe_.emitOpError("shards among ")
             << ranks << " ranks, for each of which no variable has 64 bytes: leave shard out, or give fewer";
    if (recipe_.shardsGradients() && recipe_.getAccumulate().value_or(1) == 1)
      recipe_.emitWarning(
          "shards gradients, which without microbatches is what optimizer does: give accumulate, or say so");
    if (recipe_.shardsGradients())
      gradients->setAttr(kScatterEachAttr, attributes.getUnitAttr());
    return success();
  }

  void giveToOwners(func::FuncOp gradients, ArrayRef<ir::VariableOp> trained, ArrayRef<unsigned> members) {
    Builder &attributes = entry_.builder();
    const int64_t ranks = *recipe_.getWorldSize();
    const unsigned first = kFirstGradient + members.front();
    for (unsigned member : members)
      gradients.setResultAttr(kFirstGradient + member, kOwnersAttr,
                              attributes.getDenseI64ArrayAttr({first, ranks}));
    ir::VariableOp owned =
        declareOwned(llvm::map_to_vector(members, [&](unsigned member) { return trained[member]; }), ranks);
    gradients.setResultAttr(first, "gpuc.variable", FlatSymbolRefAttr::get(owned.getSymNameAttr()));
  }

  /// What each of `parts`, in the order of what is trained, becomes by `compute`, a scalar, added up: of
  /// shares over all ranks.
  Expr addUp(ArrayRef<Value> parts, function_ref<Expr(Value)> compute) {
    Expr ofWhole, ofShares;
    for (auto [trained, part] : llvm::zip_equal(mean_.trained, parts)) {
      Expr term = compute(part);
      const bool isWhole = !trained.variable.getOwners() && part.getType() == trained.variable.getWholeType();
      Expr &sum = isWhole ? ofWhole : ofShares;
      sum = sum.value() ? sum + term : term;
    }
    if (!ofShares.value())
      return ofWhole;
    Expr ofAll = overRanks(ofShares);
    return ofWhole.value() ? ofWhole + ofAll : ofAll;
  }

  SmallVector<Value> gradients() const {
    return llvm::map_to_vector(mean_.trained, [](const Trained &trained) { return trained.gradient; });
  }

  //===--------------------------------------------------------------------===//
  // The loss scale
  //===--------------------------------------------------------------------===//

  LogicalResult readLossScale() {
    FailureOr<std::optional<LossScale>> lossScale = LossScale::fromRecipe(recipe_);
    if (failed(lossScale) || !*lossScale)
      return lossScale;
    lossScale_ = *lossScale;
    return lossScale_->declareVariables(module_);
  }

  void leaveOutBroken() {
    if (!lossScale_)
      return;
    Expr broken = addUp(gradients(), [&](Value gradient) { return countBroken(ops_.at(gradient)); });
    allFinite_ = broken == 0;
    keepIf(allFinite_);
    waitsForAll_.push_back("loss_scale");
    mean_.sums.clear(); // so that the norm is that of the gradients which were tested
  }

  //===--------------------------------------------------------------------===//
  // Clipping
  //===--------------------------------------------------------------------===//

  /// torch.nn.utils.clip_grad_value_.
  void clipValues() {
    std::optional<APFloat> bound = recipe_.getClipValue();
    if (!bound)
      return;
    APFloat low = *bound;
    low.changeSign();
    for (Trained &trained : mean_.trained)
      trained.gradient = ir::ClampOp::create(entry_.builder(), at(trained.variable).location(),
                                             trained.gradient.getType(), trained.gradient, low, *bound);
    mean_.sums.clear(); // their norm is not that of the gradients any more
  }

  /// The 2-norm of all gradients together. Where it can be, it is taken of the sums and divided after, so
  /// that the gradients need not be kept for it.
  Value buildNorm() {
    bool ofSums = !mean_.sums.empty();
    SmallVector<Value> parts(mean_.sums);
    if (!ofSums)
      parts = gradients();
    StepBuilder ops(entry_.builder(), NameLoc::get(entry_.builder().getStringAttr("grad_norm")));
    Type element = entry_.builder().getF32Type();
    for (Value part : parts)
      if (getElementTypeOrSelf(part.getType()).isF64())
        element = getElementTypeOrSelf(part.getType());
    Expr squares = addUp(parts, [&](Value part) {
      Expr wide = cast(ops.at(part), element);
      return sumAll(wide * wide);
    });
    Expr root = sqrt(squares);
    return ofSums ? root / spread(mean_.divisor, root) : root;
  }

  /// torch.nn.utils.clip_grad_norm_: gradients times min(1, bound / (norm + 1e-6)).
  void clipNorm(Value norm) {
    std::optional<APFloat> bound = recipe_.getClipNorm();
    if (!bound)
      return;
    waitsForAll_.push_back("clip_norm");
    Expr factor = min(bound->convertToDouble() / (ops_.at(norm) + 1e-6), 1);
    for (Trained &trained : mean_.trained) {
      Expr gradient = at(trained.variable).at(trained.gradient);
      trained.gradient = gradient * spread(factor, gradient);
    }
  }

  //===--------------------------------------------------------------------===//
  // Updates that are left out
  //===--------------------------------------------------------------------===//

  LogicalResult leaveOutOutliers(Value norm) {
    if (!recipe_.getSkip())
      return success();
    FailureOr<Outliers> outliers =
        Outliers::fromSpec(*recipe_.getSkip(), [&] { return recipe_.emitOpError(); });
    if (failed(outliers))
      return failure();
    waitsForAll_.push_back("skip");
    Location location = NameLoc::get(entry_.builder().getStringAttr("skip"));
    Expr loss = ops_.at(mean_.loss);
    keepIf(
        outliers->buildKeep(module_, entry_.builder(), location, loss / spread(mean_.divisor, loss), norm));
    return success();
  }

  /// The update is made only if `condition` holds too.
  void keepIf(Value condition) { keep_ = keep_ ? ops_.at(keep_) & ops_.at(condition) : condition; }

  /// What is assigned to parameters, the optimizer's slots and running statistics holds only if the update is
  /// made. Counters go on.
  void assignIfKept() {
    const SymbolTable symbols(module_);
    for (auto assign : llvm::to_vector(entry_.function().getBody().front().getOps<ir::AssignOp>())) {
      auto variable = symbols.lookup<ir::VariableOp>(assign.getVariable());
      if (variable.getKind() == "counter")
        continue;
      StepBuilder ops(entry_.builder(), assign.getLoc());
      ops.assign(variable, choose(keep_, ops.at(assign.getValue()), ops.read(variable)));
      assign.erase();
    }
  }

  //===--------------------------------------------------------------------===//
  // Updates
  //===--------------------------------------------------------------------===//

  /// @step counts all steps, @updates those in which the update was made, if that may not be all: schedule
  /// and optimizer go by these.
  LogicalResult countStep(ir::VariableOp step) {
    FailureOr<LearningRate> rate =
        LearningRate::fromSpecs(recipe_.getScheduleAttr(), [&] { return recipe_.emitOpError(); });
    ir::VariableOp updates = keep_ ? findCounter(module_, "updates") : step;
    if (failed(rate) || !updates)
      return failure();
    Expr completed = ops_.read(updates), next = completed + 1;
    step_ = next;
    ops_.assign(updates, keep_ ? choose(keep_, next, completed) : next);
    if (updates != step)
      ops_.assign(step, ops_.read(step) + 1);
    schedule_ = std::move(*rate);
    updates_ = completed;
    return success();
  }

  /// The learning rate of this update; null after an error. Given ones differ by group, whatever they are at
  /// first.
  Value rateOf(const Optimizer &optimizer, size_t group) {
    if (schedule_.isGiven())
      return givenRate(optimizer, group);
    Value &rate = rates_[optimizer.learningRate()];
    if (!rate)
      rate = schedule_.build(entry_.builder(), ops_.location(), updates_, optimizer.learningRate());
    return rate;
  }

  /// @lr, and @"lr/1" of the first group, hold the recipe's rates until others are written into them.
  Value givenRate(const Optimizer &optimizer, size_t group) {
    return givenNumber("lr", optimizer.learningRate(), group, "the learning rate that is given");
  }

  /// The variable @NAME, of a group @"NAME/1" and so on, which holds `first` until another is written into
  /// it.
  Value givenNumber(StringRef name, double first, size_t group, StringRef what) {
    Value &number = givenNumbers_[{name.str(), group}];
    if (number)
      return number;
    const std::string ofGroup = group == 0 ? name.str() : (name + "/" + Twine(group)).str();
    ir::VariableOp variable = findCounter(module_, ofGroup, entry_.builder().getF64Type(), first, what);
    soundRates_ &= static_cast<bool>(variable);
    return variable ? number = ops_.read(variable) : Value();
  }

  /// What else of the optimizer is given: @"optimizer/momentum", @"optimizer/momentum/1" of the first group.
  void giveNumbers(const Optimizer &optimizer, size_t group, UpdateOperands &operands) {
    for (StringRef name : optimizer.givable(schedule_.givenNumbers())) {
      operands.givenNumbers.push_back(name);
      operands.given.push_back(givenNumber(("optimizer/" + name).str(), optimizer.number(name), group,
                                           "a number of the optimizer that is given"));
    }
  }

  /// Each is one of some trained variable, or would be of one that no group names.
  LogicalResult checkGivenNumbers() {
    const SmallVector<StringRef> ofRest = groups_.optimizer().givable(schedule_.givenNumbers());
    for (StringRef name : schedule_.givenNumbers())
      if (!llvm::is_contained(ofRest, name) && llvm::none_of(givenNumbers_, [&](const auto &number) {
            return StringRef(number.first.first) == ("optimizer/" + name).str();
          }))
        return recipe_.emitOpError("schedule given: ")
               << name << " is no number of the optimizer that can be given, or it is 0, and then stays so";
    return success();
  }

  void update(Trained trained) {
    StepBuilder ops = at(trained.variable);
    Optimizer optimizer = groups_.optimizerOf(trained.variable);
    auto readOf = [&](ir::VariableOp variable) -> Value {
      return optimizer.needsWhole() && variable.getShardOf() ? readWhole(ops, variable) : ops.read(variable);
    };
    UpdateOperands operands;
    operands.weight = readOf(trained.variable);
    auto type = cast<RankedTensorType>(operands.weight.getType());
    operands.gradient = trained.gradient;
    operands.step = step_;
    operands.lr = rateOf(optimizer, groups_.numberOf(trained.variable));
    if (!operands.lr)
      return;
    giveNumbers(optimizer, groups_.numberOf(trained.variable), operands);
    if (!soundRates_)
      return;
    SmallVector<ir::VariableOp> variables{trained.variable};
    for (const OptimizerSlot &slot : optimizer.slots(type)) {
      variables.push_back(addSlot(trained.variable, slot));
      operands.slots.push_back(readOf(variables.back()));
    }
    SmallVector<Value> updated = optimizer.buildUpdate(entry_.builder(), ops.location(), operands);
    for (auto [variable, value] : llvm::zip_equal(variables, MutableArrayRef<Value>(updated))) {
      if (value.getType() != variable.getType())
        value = ownShare(ops, variable, value);
      ops.assign(variable, value);
    }
    if (means_)
      means_->build(module_, ops, trained.variable, ops.at(updated.front()), step_);
  }

  /// Declares `<variable>/<slot>`: of a variable's shape it is shared out as that is, and who owns the
  /// variable owns it.
  ir::VariableOp addSlot(ir::VariableOp variable, const OptimizerSlot &slot) {
    const bool isShare = variable.getShards() && (variable.getOwners() || slot.type == variable.getType() ||
                                                  slot.type == variable.getWholeType());
    ir::VariableOp declared = declareVariable(
        module_, variable.getLoc(), (variable.getSymName() + "/" + slot.name).str(),
        cast<RankedTensorType>(isShare && variable.getShardOf() ? variable.getType() : slot.type),
        constantInitializer(module_.getContext(), slot.initial), "optimizer");
    if (isShare)
      shareOutAs(declared, variable, ("/" + slot.name).str());
    return declared;
  }

  ModuleOp module_;
  ir::RecipeOp recipe_;
  ParameterGroups groups_;
  std::optional<WeightMeans> means_;
  EntryBuilder entry_;
  StepBuilder ops_;
  MeanGradients mean_; // its sums: none any more once more was done to the gradients than to divide them
  Value step_, keep_;  // keep_: null if every update is made
  LearningRate schedule_;
  Value updates_;                                                // made before this one
  std::map<double, Value> rates_;                                // of optimizers, by their own learning rates
  std::map<std::pair<std::string, size_t>, Value> givenNumbers_; // by name and number of the group
  bool soundRates_ = true; // the model has no thing of its own by the name of one
  std::optional<LossScale> lossScale_;
  Value allFinite_;                    // null without a loss scale
  SmallVector<StringRef> waitsForAll_; // entries for which no update is made before all gradients are there
};

} // namespace

LogicalResult buildTrainStep(ModuleOp module, ir::RecipeOp recipe, func::FuncOp gradients,
                             ir::VariableOp step) {
  return TrainStep(module, recipe).build(gradients, step);
}

} // namespace gpuc
