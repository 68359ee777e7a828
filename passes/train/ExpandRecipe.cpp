//===- ExpandRecipe.cpp - From a recipe to functions with everything explicit ===//
//
// Contract: takes the model functions, `@gradients` (from gpuc-differentiate-loss) and the recipe, and leaves
// the entries of a plan in their place:
//
//   @init        gives every variable its first value, drawn from @seed alone
//   @train_step  forward and backward pass over all parts of the batch, gradients of the mean, their norm,
//                optimizer updates, and what the model assigns (running statistics); (loss_sum, count, lr,
//                grad_norm)
//   @eval_step   loss and accuracy in inference form; (loss_sum, count, correct, correct_count)
//   @predict     the model in inference form, and so each function with `gpuc.entry`
//
// In inference form no variable is assigned.
//
// Each calls nothing. Without an optimizer, or with training=false, there is no @train_step; without a recipe
// no @eval_step either.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialects/gpuc/CountsRows.h"
#include "passes/base/Entries.h"
#include "passes/base/Inline.h"
#include "passes/recipe/Initializers.h"
#include "passes/recipe/StepBuilder.h"
#include "passes/recipe/WeightMeans.h"
#include "passes/train/EntryBuilder.h"
#include "passes/train/InferenceForm.h"
#include "passes/train/Owners.h"
#include "passes/train/Shards.h"
#include "passes/train/TrainStep.h"

namespace gpuc {
#define GEN_PASS_DEF_EXPANDRECIPEPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

/// The ids of what @init draws: above those of the model's own random ops, which count from 0.
constexpr int64_t kFirstInitialId = int64_t(1) << 27;

/// Puts what they compute outside of training in place of ops like dropout, and leaves out what the model
/// assigns: running statistics are training's to change.
void toInference(func::FuncOp function) {
  toInferenceForm(function);
  function.walk([](ir::AssignOp op) { op.erase(); });
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

class ExpandRecipePass : public impl::ExpandRecipePassBase<ExpandRecipePass> {
  using ExpandRecipePassBase::ExpandRecipePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto recipes = module.getOps<ir::RecipeOp>();
    ir::RecipeOp recipe = recipes.empty() ? ir::RecipeOp() : *recipes.begin();
    bool done = module.lookupSymbol("init") != nullptr;
    if (done && !recipe)
      return; // The output of an earlier run.
    if (failed(checkNames(module)) || failed(expand(module, recipe)))
      return signalPassFailure();
  }

  /// No function of the model may have the name of one that is made here.
  static LogicalResult checkNames(ModuleOp module) {
    for (StringRef name : {"init", "train_step", "eval_step"})
      if (Operation *taken = module.lookupSymbol(name))
        return taken->emitOpError("is named @")
               << name << ", as gpuc-expand-recipe names what it makes: rename it";
    return success();
  }

  LogicalResult expand(ModuleOp module, ir::RecipeOp recipe) {
    ir::VariableOp seed = findCounter(module, "seed"), step = findCounter(module, "step");
    if (!seed || !step)
      return failure();
    if (training && recipe && recipe.getOptimizer() && failed(expandTraining(module, recipe, step)))
      return failure();
    if (recipe && failed(buildEvalStep(module, recipe)))
      return failure();
    SmallVector<func::FuncOp> own = ownEntries(module);
    for (func::FuncOp function : own) {
      if (failed(inlineCalls(function)))
        return failure();
      warnOfAssigns(function);
    }
    llvm::for_each(own, toInference);
    if (recipe)
      evaluateMeans(module, recipe, own);
    gatherReads(module);
    gatherOwned(module);
    if (failed(buildInit(module, seed)))
      return failure();
    eraseOwned(module);
    if (recipe && recipe.getSeed())
      module->setAttr("gpuc.seed", recipe.getSeedAttr());
    eraseModel(module, recipe);
    if (!training)
      for (auto block : llvm::make_early_inc_range(module.getOps<ir::CheckpointOp>()))
        block.erase(); // nothing is kept for gradients
    return success();
  }

  LogicalResult expandTraining(ModuleOp module, ir::RecipeOp recipe, ir::VariableOp step) {
    auto gradients = module.lookupSymbol<func::FuncOp>("gradients");
    if (!gradients || !gradients.getOps<ir::GradientOp>().empty())
      return recipe.emitOpError("has an optimizer, but there is no @gradients for it: run "
                                "gpuc-differentiate-loss and gpuc-autodiff first");
    return buildTrainStep(module, recipe, gradients, step);
  }

  static LogicalResult buildEvalStep(ModuleOp module, ir::RecipeOp recipe) {
    EntryBuilder entry(module, "eval_step");
    SmallVector<std::pair<FlatSymbolRefAttr, SmallVector<StringRef>>> parts = {
        {recipe.getLossAttr(), {"loss_sum", "count"}}};
    if (FlatSymbolRefAttr accuracy = recipe.getAccuracyAttr())
      parts.push_back({accuracy, {"correct", "correct_count"}});
    for (auto &[symbol, names] : parts) {
      func::FuncOp callee = evaluatedAs(module, symbol);
      if (failed(inlineCalls(callee)))
        return failure();
      FailureOr<SmallVector<Value>> results = entry.append(callee);
      if (failed(results))
        return failure();
      for (auto [name, value] : llvm::zip_equal(names, *results))
        entry.addResult(name, value);
    }
    func::FuncOp made = entry.finish();
    auto loss = module.lookupSymbol<func::FuncOp>(recipe.getLoss());
    if (Attribute once = loss.getResultAttr(1, kCountsOnceAttr))
      made.setResultAttr(1, kCountsOnceAttr, once);
    toInference(made);
    return success();
  }

  /// The function that the recipe names, or its copy with gradients of what is computed outside of training.
  static func::FuncOp evaluatedAs(ModuleOp module, FlatSymbolRefAttr symbol) {
    auto function = module.lookupSymbol<func::FuncOp>(symbol.getAttr());
    auto copy = function->getAttrOfType<FlatSymbolRefAttr>(kEvaluatedAsAttr);
    return copy ? module.lookupSymbol<func::FuncOp>(copy.getAttr()) : function;
  }

  /// What is evaluated reads the running means of weights, if the recipe has them and does not say otherwise.
  static void evaluateMeans(ModuleOp module, ir::RecipeOp recipe, ArrayRef<func::FuncOp> own) {
    if (!recipe.getEma() || !recipe.getEma()->getFlag("evaluate", true))
      return;
    readMeans(module.lookupSymbol<func::FuncOp>("eval_step"));
    llvm::for_each(own, readMeans);
  }

  static LogicalResult buildInit(ModuleOp module, ir::VariableOp seed) {
    EntryBuilder entry(module, "init");
    OpBuilder &builder = entry.builder();
    StepBuilder counters(builder, seed.getLoc());
    Value key = counters.read(seed);
    Value step = counters.constant(seed.getType(), 0.0);
    llvm::StringMap<Value> values;
    const llvm::StringSet<> owned = ownedNames(module);
    for (auto [ordinal, variable] : llvm::enumerate(module.getOps<ir::VariableOp>())) {
      if (isSetBySession(variable.getSymName(), variable.getKind()))
        continue; // before it runs @init
      // A copy follows its original, which is a variable of the model.
      FailureOr<Value> value = values.lookup(copiedVariable(variable));
      if (!*value)
        value = initialOfOwners(builder, variable, values);
      if (!*value)
        value = buildInitialValue(builder, variable, key, step, kFirstInitialId + ordinal);
      if (failed(value))
        return failure();
      if (value->getType() != variable.getType())
        value = initialShare(builder, variable, *value);
      values[variable.getSymName()] = *value;
      if (owned.contains(variable.getSymName()))
        continue; // what ranks own is made of it
      StepBuilder(builder, value->getLoc()).assign(variable, *value);
    }
    entry.finish();
    return success();
  }

  /// All ranks draw the same whole. What is one number everywhere is so in a share.
  static Value initialShare(OpBuilder &builder, ir::VariableOp variable, Value whole) {
    StepBuilder ops(builder, whole.getLoc());
    if (auto constant = whole.getDefiningOp<ir::ConstantOp>())
      return ir::ConstantOp::create(builder, whole.getLoc(), variable.getType(), constant.getValue());
    return ownShare(ops, variable, whole);
  }

  bool isEntry(func::FuncOp function) const {
    return function->hasAttr(kEntryAttr) || (predict && function.getName() == "predict");
  }

  /// @predict, and what gpuc-find-entries found.
  SmallVector<func::FuncOp> ownEntries(ModuleOp module) const {
    return llvm::filter_to_vector(module.getOps<func::FuncOp>(),
                                  [this](func::FuncOp function) { return isEntry(function); });
  }

  /// Statistics are training's to change, nobody expects otherwise. Of anything else one may.
  static void warnOfAssigns(func::FuncOp function) {
    const SymbolTable symbols(function->getParentOfType<ModuleOp>());
    for (auto assign : function.getOps<ir::AssignOp>()) {
      auto variable = symbols.lookup<ir::VariableOp>(assign.getVariable());
      if (variable && variable.getKind() != "statistic")
        assign.emitWarning() << "@" << function.getName() << " does not change @" << assign.getVariable()
                             << ": only a train step assigns; return the value instead";
    }
  }

  /// An entry is over a whole batch.
  static void eraseParts(func::FuncOp function) {
    for (unsigned index = 0; index < function.getNumArguments(); ++index)
      function.removeArgAttr(index, ir::kPartitionAttr);
    function.walk([](Operation *op) { op->removeAttr(ir::kPartitionAttr); });
  }

  void eraseModel(ModuleOp module, ir::RecipeOp recipe) const {
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (!isEntry(function) &&
          !llvm::is_contained({"init", "train_step", "eval_step"}, function.getName())) {
        function.erase();
      } else {
        function->removeAttr(kEntryAttr);
        eraseParts(function);
      }
    if (recipe)
      recipe.erase();
  }
};

} // namespace
} // namespace gpuc
