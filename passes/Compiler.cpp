//===- Compiler.cpp - From a file's text to the stage that is asked for -----===//

#include "passes/Compiler.h"

#include "dialects/gpuc/RecipeEntries.h"
#include "dialects/plan/PlanOps.h"
#include "passes/Diagnostics.h"
#include "passes/EmitPlan.h"
#include "passes/ModuleText.h"
#include "passes/RecipeTexts.h"
#include "passes/Report.h"
#include "passes/SourcePlaces.h"
#include "passes/TensorSizes.h"
#include "passes/codegen/KernelCache.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace gpuc {

Stage stageOf(ModuleOp module) {
  if (!module.getOps<plan::ArenaOp>().empty())
    return Stage::plan;
  if (module->hasAttr(plan::kSlotsAttr))
    return Stage::streams;
  if (!module.getOps<plan::ProgramOp>().empty())
    return Stage::commands;
  bool expanded = module.getOps<ir::RecipeOp>().empty() && module.lookupSymbol("init");
  return expanded ? Stage::trainStep : Stage::model;
}

struct Compiler::State {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  FirstError errors{&context};
};

Compiler::Compiler() : state(std::make_unique<State>()) {
  state->context.loadDialect<ir::GpucDialect, plan::PlanDialect, func::FuncDialect>();
}

Compiler::~Compiler() = default;

Result<OwningOpRef<ModuleOp>> Compiler::parse(const std::string &text, const std::string &fileName) {
  GPUC_RETURN_IF_ERROR(checkModuleText(text, fileName));
  OwningOpRef<ModuleOp> module = parseWithPlaces(text, fileName, &state->context);
  if (!module)
    return state->errors.take(fileName + ": not a module of MLIR");
  return module;
}

Status Compiler::checkRecipe(const std::string &key, const std::vector<std::string> &texts) {
  std::string error;
  FailureOr<Attribute> value = ir::recipeEntryFromTexts(&state->context, key, texts, error);
  if (failed(value))
    return Status::error(error);
  auto emitHere = [&] { return emitError(UnknownLoc::get(&state->context)); };
  bool holds = succeeded(checkRecipeEntry(key, *value, emitHere));
  return holds ? okStatus() : state->errors.take("not an entry of a recipe");
}

Status Compiler::advance(ModuleOp module, Stage stage, const CompilerOptions &options,
                         std::function<Status(PassManager &)> configure) {
  PassManager passes(&state->context);
  GPUC_RETURN_IF_ERROR(configure(passes));
  Stage from = stageOf(module);
  if (failed(checkValues(module)))
    return state->errors.take("not a module of tensors");
  if (module.getBody()->empty())
    return Status::error("the module is empty: expected a model, with a function @predict or @loss");
  if (from >= Stage::commands && (options.train.batch != 0 || !options.train.recipe.empty()))
    return Status::error("the module is a plan already: batch and recipe can be chosen no more");
  if (from >= Stage::commands && options.target != "auto")
    return Status::error("the module is a plan already: its target can be chosen no more");
  PipelineOptions train = options.train;
  train.target = options.target == "auto" ? "host" : options.target;
  if (from < Stage::commands && stage >= Stage::trainStep)
    buildTrainPipeline(passes, train);
  if (stage == Stage::plan)
    buildPlanPipeline(passes, train.target, from);
  if (failed(passes.run(module)))
    return state->errors.take("compilation failed");
  return okStatus();
}

Result<std::string> Compiler::emit(ModuleOp module, const CompilerOptions &options) {
  std::optional<KernelCache> cache;
  if (!options.cacheFolder.empty())
    cache.emplace(options.cacheFolder, options.cacheBytes);
  CodegenOptions codegen{options.optLevel, options.threads, cache ? &*cache : nullptr};
  FailureOr<std::string> bytes = emitPlan(module, {codegen, options.seed});
  if (failed(bytes))
    return state->errors.take("code generation failed");
  if (cache)
    cache->trim();
  if (cache && !cache->complaint().empty())
    emitWarning(UnknownLoc::get(&state->context))
        << "compiled kernels cannot be kept in '" << options.cacheFolder << "': " << cache->complaint()
        << "; name another folder with --cache-dir, or none with --no-cache";
  return std::move(*bytes);
}

Result<std::string> Compiler::report(ModuleOp module, int64_t compileMilliseconds) {
  FailureOr<llvm::json::Object> report = reportOf(module);
  if (failed(report))
    return state->errors.take("the report failed");
  (*report)["compile_ms"] = compileMilliseconds;
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(*report))).str();
}

} // namespace gpuc
