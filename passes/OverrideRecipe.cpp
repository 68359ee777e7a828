//===- OverrideRecipe.cpp - The command line's wishes in the recipe ----------===//
//
// Contract: whatever follows reads the recipe alone. A module without one gets it if an optimizer is asked
// for and there is a `@loss` (and `@accuracy`) for it. Once the recipe is expanded, a wish comes too late,
// which is an error.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/GpucOps.h"
#include "passes/Optimizers.h"
#include "passes/Passes.h"

namespace gpuc {
#define GEN_PASS_DEF_OVERRIDERECIPEPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

class OverrideRecipePass : public impl::OverrideRecipePassBase<OverrideRecipePass> {
  using OverrideRecipePassBase::OverrideRecipePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!optimizer.empty() && failed(overrideOptimizer(module)))
      return signalPassFailure();
    if (seed < 0)
      return;
    // The seed is the plan's default and may be said at any stage.
    auto attribute = Builder(module).getI64IntegerAttr(seed);
    module->setAttr("gpuc.seed", attribute);
    for (auto recipe : module.getOps<ir::RecipeOp>())
      recipe.setSeedAttr(attribute);
  }

  LogicalResult overrideOptimizer(ModuleOp module) {
    std::string error;
    FailureOr<ir::SpecAttr> spec = ir::SpecAttr::fromText(&getContext(), optimizer, error);
    if (failed(spec))
      return module.emitError("optimizer: ") << error;
    if (failed(Optimizer::fromSpec(*spec, [&] { return module.emitError(); })))
      return failure();
    if (module.lookupSymbol("init"))
      return module.emitError("the recipe is expanded already: an optimizer can be chosen no more");
    FailureOr<ir::RecipeOp> recipe = findRecipe(module);
    if (failed(recipe))
      return failure();
    recipe->setOptimizerAttr(*spec);
    return success();
  }

  static FailureOr<ir::RecipeOp> findRecipe(ModuleOp module) {
    for (auto recipe : module.getOps<ir::RecipeOp>())
      return recipe;
    if (!module.lookupSymbol<func::FuncOp>("loss"))
      return module.emitError("an optimizer needs a recipe, or a function @loss, to train by");
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
