//===- OverrideRecipe.cpp - The command line's wishes in the recipe ----------===//
//
// Contract: whatever follows reads the recipe alone. A module without one gets it if anything is asked for
// and there is a `@loss` (and `@accuracy`) for it. Once the recipe is expanded, a wish comes too late, and
// without an optimizer none has an effect; both are errors.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/Decisions.h"
#include "passes/recipe/RecipeTexts.h"
#include "passes/recipe/TrainingDigest.h"

namespace gpuc {
#define GEN_PASS_DEF_OVERRIDERECIPEPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

class OverrideRecipePass : public impl::OverrideRecipePassBase<OverrideRecipePass> {
  using OverrideRecipePassBase::OverrideRecipePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    RecipeTexts texts = splitRecipeTexts(entries);
    if (!optimizer.empty())
      texts.emplace_back("optimizer", optimizer);
    if (!texts.empty() && failed(overrideEntries(module, texts)))
      return signalPassFailure();
    for (auto recipe : module.getOps<ir::RecipeOp>())
      nameTraining(module, recipe);
    if (seed < 0)
      return;
    // The seed is the plan's default and may be said at any stage.
    auto attribute = Builder(module).getI64IntegerAttr(seed);
    module->setAttr("gpuc.seed", attribute);
    for (auto recipe : module.getOps<ir::RecipeOp>())
      recipe.setSeedAttr(attribute);
  }

  static void nameTraining(ModuleOp module, ir::RecipeOp recipe) {
    module->removeAttr(kTrainingAttr); // of what it was before
    if (recipe.getOptimizer())
      module->setAttr(kTrainingAttr, Builder(module).getI64IntegerAttr(
                                         static_cast<int64_t>(digestOfTraining(module, recipe))));
  }

  static LogicalResult overrideEntries(ModuleOp module, const RecipeTexts &texts) {
    FailureOr<NamedAttrList> values =
        recipeEntriesOf(module.getContext(), texts, [&] { return module.emitError(); });
    if (failed(values))
      return failure();
    const std::string &first = texts.front().first;
    if (module.lookupSymbol("init"))
      return module.emitError("the recipe is expanded already: ") << first << " can be chosen no more";
    FailureOr<ir::RecipeOp> recipe = findRecipe(module, first);
    if (failed(recipe))
      return failure();
    for (NamedAttribute value : *values)
      (*recipe)->setAttr(value.getName(), value.getValue());
    // Precision is evaluation's and prediction's too.
    auto ofTraining = llvm::find_if(texts, [](const auto &text) { return text.first != "precision"; });
    if (ofTraining != texts.end() && !recipe->getOptimizer())
      return module.emitError("there is no optimizer, so that ")
             << ofTraining->first << " would do nothing: name one";
    return success();
  }

  static FailureOr<ir::RecipeOp> findRecipe(ModuleOp module, StringRef wish) {
    for (auto recipe : module.getOps<ir::RecipeOp>())
      return recipe;
    if (!module.lookupSymbol<func::FuncOp>("loss"))
      return module.emitError() << wish << " needs a recipe, or a function @loss, to train by";
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto symbol = [&](StringRef name) {
      return module.lookupSymbol<func::FuncOp>(name) ? FlatSymbolRefAttr::get(builder.getContext(), name)
                                                     : FlatSymbolRefAttr();
    };
    return ir::RecipeOp::create(builder, module.getLoc(), symbol("loss"), symbol("accuracy"));
  }
};

} // namespace
} // namespace gpuc
