//===- Compiler.cpp - From a file's text to the stage that is asked for -----===//

#include "passes/Compiler.h"

#include "dialects/gpuc/RecipeEntries.h"
#include "dialects/plan/PlanOps.h"
#include "passes/DeviceAnswers.h"
#include "passes/LargestBatch.h"
#include "passes/MemoryBudget.h"
#include "passes/ModuleText.h"
#include "passes/Passes.h"
#include "passes/Peaks.h"
#include "passes/WaysOut.h"
#include "passes/base/Decisions.h"
#include "passes/base/Diagnostics.h"
#include "passes/base/Entries.h"
#include "passes/base/KnownAttributes.h"
#include "passes/base/Target.h"
#include "passes/base/TensorSizes.h"
#include "passes/batch/Parts.h"
#include "passes/codegen/KernelCache.h"
#include "passes/codegen/cuda/CudaCode.h"
#include "passes/codegen/host/HostCode.h"
#include "passes/emit/EmitPlan.h"
#include "passes/recipe/RecipeTexts.h"
#include "passes/recompute/Policy.h"
#include "passes/report/Report.h"
#include "passes/report/StepSchedule.h"
#include "runtime/base/flags.h"
#include "runtime/base/quote.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace gpuc {

Stage stageOf(ModuleOp module) {
  if (!module.getOps<plan::ArenaOp>().empty())
    return Stage::plan;
  if (module->hasAttr(plan::kSlotsAttr))
    return Stage::streams;
  if (!module.getOps<plan::ProgramOp>().empty())
    return Stage::commands;
  if (module->hasAttr(kFusedForAttr))
    return Stage::trainStep;
  return isExpanded(module) ? Stage::expanded : Stage::model;
}

namespace {

/// Parses a module. Where the location of an op of a model is written as no more than a name, loc("fc1"), it
/// becomes loc("fc1"("model.mlir":12:5)), with the place of the op in the text, which MLIR's parser drops.
/// Null after an error, which goes to the context's handler.
OwningOpRef<ModuleOp> parseWithPlaces(const std::string &text, const std::string &fileName,
                                      MLIRContext *context) {
  llvm::SourceMgr source;
  source.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text, fileName), SMLoc());
  AsmParserState state;
  Block parsed;
  if (failed(parseAsmSourceFile(source, &parsed, ParserConfig(context), &state)))
    return nullptr;
  auto file = StringAttr::get(context, fileName);
  auto whole = FileLineColLoc::get(file, /*line=*/1, /*column=*/1);
  auto module = detail::constructContainerOpForParserIfNecessary<ModuleOp>(&parsed, context, whole);
  if (!module)
    return module;
  bool isModel = stageOf(*module) == Stage::model, located = false;
  module->walk([&](Operation *op) {
    const AsmParserState::OperationDefinition *definition = state.getOpDef(op);
    if (!definition)
      return;
    auto [line, column] = source.getLineAndColumn(definition->loc.Start);
    auto place = FileLineColLoc::get(file, line, column);
    located |= op->getLoc() != place;
    // What has no place at a later stage is of the compiler's own making.
    auto name = dyn_cast<NameLoc>(op->getLoc());
    if (isModel && name && isa<UnknownLoc>(name.getChildLoc()))
      op->setLoc(NameLoc::get(name.getName(), place));
  });
  if (!isModel && !located)
    emitWarning(UnknownLoc::get(context))
        << fileName
        << " is without locations: what is compiled from it names no layers and lines, and its report no "
        << "residuals; --emit writes them unless --no-locations is given, gpuc-opt with "
           "--mlir-print-debuginfo";
  return module;
}

/// -O of the text, where it is not what there is without a flag.
constexpr StringLiteral kOptLevelAttr = "gpuc.opt_level";
constexpr int kDefaultOptLevel = 3;

/// Whether a step counts what is NaN or infinite.
bool checksNumerics(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    for (unsigned result = 0; result < function.getNumResults(); ++result)
      if (function.getResultAttr(result, "gpuc.checks"))
        return true;
  bool checks = false;
  module.walk([&](plan::OutputOp output) { checks |= static_cast<bool>(output.getChecks()); });
  return checks;
}

/// What was decided when the text was made that is continued from, and cannot be decided again.
Status checkUndecided(ModuleOp module, Stage from, const CompilerOptions &options) {
  if (from < Stage::trainStep)
    return okStatus();
  std::string already =
      from == Stage::trainStep ? "the train step is made already: " : "the module is a plan already: ";
  auto batch = module->getAttrOfType<IntegerAttr>(plan::kBatchAttr);
  bool sameBatch = from == Stage::trainStep && batch && batch.getInt() == options.train.batch;
  if ((options.train.batch != 0 && !sameBatch) || !options.train.recipe.empty())
    return Status::error(already + "batch and recipe can be chosen no more");
  auto target = module->getAttrOfType<StringAttr>(kFusedForAttr);
  if (options.target != "auto" && (!target || target != options.target))
    return Status::error((target ? "the train step is made for " + target.str() + " already: " : already) +
                         "its target can be chosen no more");
  if (options.memoryBudget || options.tradeoff)
    return Status::error(already + "what it keeps can be chosen no more: give --" +
                         (options.memoryBudget ? "memory-budget" : "report-tradeoff") +
                         " where it is made from the model");
  if (options.train.checkpoint != kModelPolicy)
    return Status::error(already + "--checkpoint can be chosen no more");
  if (!options.train.predict && module.lookupSymbol("predict"))
    return Status::error(already + "--no-predict can be chosen no more");
  if (options.train.checkNumerics && !checksNumerics(module))
    return Status::error(already + "--check-numerics can be chosen no more");
  if (from >= Stage::streams && (!options.train.link.empty() || options.train.bucketBytes > 0))
    return Status::error(already + "its buckets can be chosen no more: give --" +
                         (options.train.link.empty() ? "bucket-size" : "link") +
                         " where it is made from the model");
  return okStatus();
}

/// There must be a @predict to leave out, and something beside it.
Status checkPredict(ModuleOp module, Stage from, const CompilerOptions &options) {
  if (options.train.predict || from >= Stage::trainStep)
    return okStatus();
  if (!module.lookupSymbol("predict"))
    return Status::error("--no-predict: the model has no @predict: leave it out");
  if (module.getOps<ir::RecipeOp>().empty())
    return Status::error("--no-predict: the model has no recipe, and nothing is left of it: leave it out");
  return okStatus();
}

/// The batch that the command line wants, in the text of a model.
void writeBatch(ModuleOp module, int64_t batch) {
  auto recipes = module.getOps<ir::RecipeOp>();
  for (ir::RecipeOp recipe : recipes)
    recipe->setAttr("batch", Builder(module).getI64IntegerAttr(batch));
  if (recipes.empty())
    emitWarning(UnknownLoc::get(module.getContext()))
        << "the model has no recipe, which could say the batch: give --batch=" << batch
        << " again where its text is compiled";
}

/// -O, seed and graphs, in the text of a later stage.
void writeChoices(ModuleOp module, const CompilerOptions &options) {
  Builder builder(module);
  if (options.optLevel == kDefaultOptLevel)
    module->removeAttr(kOptLevelAttr);
  else if (options.optLevel)
    module->setAttr(kOptLevelAttr, builder.getI64IntegerAttr(*options.optLevel));
  if (options.seed)
    module->setAttr(plan::kSeedAttr, builder.getI64IntegerAttr(static_cast<int64_t>(*options.seed)));
  if (options.noGraphs)
    module->setAttr(plan::kNoGraphsAttr, builder.getUnitAttr());
}

/// The policy that is asked for: the model's where it is silent is `none`.
std::string policyOf(ModuleOp module, const CompilerOptions &options) {
  const bool isSilent = module.getOps<ir::CheckpointOp>().empty();
  return options.train.checkpoint == kModelPolicy && isSilent ? "none" : options.train.checkpoint;
}

/// A policy is a rule of thumb: where it frees nothing, time is paid for nothing.
void warnIfNothingIsFreed(ModuleOp module, StringRef policy, int64_t kept) {
  if (peakOf(module) >= kept)
    emitWarning(UnknownLoc::get(module.getContext()))
        << (policy == kModelPolicy ? "what the model says with gpuc.checkpoint"
                                   : "--checkpoint=" + policy.str())
        << " frees nothing here: " << peakOf(module) << " bytes, and " << kept
        << " if everything is kept, which is faster: leave it out";
}

/// How messages call the bytes that there are.
std::string budgetOf(const CompilerOptions &options) {
  const std::string bytes = std::to_string(*options.memoryBudget) + " bytes";
  return options.budgetName.empty() ? bytes : options.budgetName + " (" + bytes + ")";
}

/// What could be done where too much memory is asked for. Of later stages than a model nothing can.
class Cures {
public:
  Cures(ModuleOp module, const PipelineOptions &options, std::optional<int64_t> bytes) : options_(options) {
    if (bytes && stageOf(module) == Stage::model) {
      model_ = module.clone();
      bytes_ = *bytes;
    }
  }

  /// `least` of what takes no other flags.
  std::string waysOut(int64_t least) {
    auto peak = [&](const PipelineOptions &options) { return peakWith(options, *model_, Stage::model); };
    return model_ ? describeWaysOut(*model_, options_, bytes_, least, peak) : "";
  }

  /// Instead of the policy that was named.
  std::string otherPolicies() {
    const std::string text = ": leave --checkpoint out, and what fits is chosen";
    const std::optional<int64_t> full =
        model_ ? peakWith("full", *model_, options_, Stage::model) : std::nullopt;
    if (!full)
      return text;
    const std::string taken = " (--checkpoint=full takes " + std::to_string(*full) + ")";
    return *full <= bytes_ ? text + taken
                           : ": leave --checkpoint out for the least that is found" + taken + waysOut(*full);
  }

private:
  OwningOpRef<ModuleOp> model_;
  PipelineOptions options_;
  int64_t bytes_ = 0;
};

/// Whether the plan is as short as it has to be.
Status checkFits(std::optional<int64_t> peak, const CompilerOptions &options, Cures &cures) {
  if (!options.memoryBudget || (peak && *peak <= *options.memoryBudget))
    return okStatus();
  if (!peak)
    return Status::error("no plan comes of this step, and --memory-budget is for one: leave it out");
  return Status::error("--checkpoint=" + options.train.checkpoint + " takes " + std::to_string(*peak) +
                       " bytes, and --memory-budget allows " + budgetOf(options) + cures.otherPolicies());
}

/// What may be left of the way to a train step, and does nothing twice.
void finishStep(OpPassManager &passes) {
  passes.addPass(createJoinChecksPass());
  passes.addPass(createCheckpointPass());
}

/// The target that passes are given.
std::string targetOf(ModuleOp module, const CompilerOptions &options) {
  auto fusedFor = module->getAttrOfType<StringAttr>(kFusedForAttr);
  return fusedFor ? fusedFor.str() : options.target == "auto" ? "host" : options.target;
}

/// By what times are predicted.
CostModel costModelOf(StringRef target, const CompilerOptions &options) {
  const auto [kind, cpu] = target.split(':');
  CostModel cost = options.device   ? CostModel(describe(*options.device))
                   : kind == "cuda" ? CostModel(kCudaDescription)
                                    : CostModel::ofHost(cpu, options.rates);
  cost.setProfile(options.profile);
  return cost;
}

/// As on the command line.
std::string textOf(plan::TargetAttr target) {
  return stringifyTargetKind(target.getKind()).str() + ":" + target.getName().str();
}

/// Only a GPU's steps could be CUDA graphs.
Status checkGraphs(ModuleOp module, StringRef target, const CompilerOptions &options) {
  auto made = module->getAttrOfType<plan::TargetAttr>(plan::kTargetAttr);
  const bool isCuda = made ? made.getKind() == plan::TargetKind::cuda : target.starts_with("cuda");
  return !options.noGraphs || isCuda
             ? okStatus()
             : Status::error("--no-graphs is of CUDA graphs, and the target is host: leave it out");
}

} // namespace

Status checkTarget(const std::string &target) {
  std::string error;
  FailureOr<Target> parsed = Target::parse(target, error);
  if (failed(parsed))
    return target == "auto" ? okStatus() : Status::error(error + ", or auto");
  if (target == "host" || target == "host:native")
    return okStatus();
  if (parsed->name.empty())
    return Status::error("'" + target +
                         "' does not say which: host:CPU (x86-64-v3) or cuda:ARCHITECTURE (sm_90)");
  bool holds = parsed->isCuda() ? succeeded(CudaTarget::parse(parsed->name, &error))
                                : succeeded(HostTarget::parse(parsed->name, &error));
  return holds ? okStatus() : Status::error(error);
}

Result<const NamedDevice *> findDevice(const std::string &name) {
  std::vector<std::string> names;
  for (const NamedDevice &device : kDevices) {
    if (name == device.name)
      return &device;
    names.push_back(device.name);
  }
  return Status::error("unknown device " + inQuotes(name) + "; did you mean " +
                       nearestName(StringRef(name).lower(), names) + "? Known are " +
                       llvm::join(names, ", "));
}

Result<std::string> targetOf(const NamedDevice &device, const std::string &target) {
  const std::string own = std::string("cuda:") + device.architecture;
  if (target == "auto" || target == own)
    return own;
  return Status::error(std::string(device.name) + " is an " + device.title + ", which plans for " + own +
                       " are made for, and --target says " + target + ": leave --target out");
}

struct Compiler::State {
  explicit State(std::function<void(Diagnosis)> warned) : errors(&context, std::move(warned)) {}

  MLIRContext context{MLIRContext::Threading::DISABLED};
  FirstError errors;
  llvm::json::Array tradeoff;
  std::vector<DeviceAnswer> answers;
  std::optional<double> bound; ///< Of the plan that was chosen, in nanoseconds.
  std::optional<KernelCache> cache;
  std::unique_ptr<HostCompiler> kernels; ///< That are compiled while the plan is made.
};

Compiler::Compiler(std::function<void(Diagnosis)> warned)
    : state(std::make_unique<State>(std::move(warned))) {
  state->context.loadDialect<ir::GpucDialect, plan::PlanDialect, func::FuncDialect>();
}

Compiler::~Compiler() = default;

Diagnosis Compiler::diagnosisOf(const Status &error) const {
  const Diagnosis &taken = state->errors.taken();
  return error.message() == printable(lineOf(taken)) ? taken : Diagnosis{.text = error.message()};
}

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

Status Compiler::checkCheckpoint(const std::string &text) {
  if (text == kBudgetPolicy || text == kModelPolicy)
    return okStatus();
  std::string error;
  return succeeded(CheckpointPolicy::parse(text, &state->context, error)) ? okStatus() : Status::error(error);
}

Result<LargestBatch> Compiler::largestBatch(ModuleOp module, const CompilerOptions &options) {
  const Stage from = stageOf(module);
  if (from != Stage::model)
    return Status::error("--batch=max needs a model: of this text the batch is chosen already");
  auto hasRows = [](func::FuncOp function) { return llvm::any_of(function.getArgumentTypes(), isDynamic); };
  if (llvm::none_of(module.getOps<func::FuncOp>(), hasRows))
    return Status::error("--batch=max has nothing to choose: no input has a leading `?`");
  PipelineOptions train = options.train;
  train.target = targetOf(module, options);
  auto largestWith = [&](StringRef policy) {
    return findLargestBatch(*options.memoryBudget, [&](int64_t rows) {
      train.batch = rows;
      return peakWith(policy, module, train, from);
    });
  };
  const int64_t kept = largestWith("none");
  if (train.checkpoint == kBudgetPolicy) {
    // The plans that a budget chooses from are many: from where two of them end it is not far.
    const int64_t nearly = std::max(kept, largestWith("full"));
    const int64_t rows = findLargestBatch(
        *options.memoryBudget,
        [&](int64_t rows) {
          train.batch = rows;
          return leastPeakWith(train, module, costModelOf(train.target, options));
        },
        nearly);
    return LargestBatch{std::max(rows, nearly), kept};
  }
  train.checkpoint = policyOf(module, options);
  return LargestBatch{train.checkpoint == "none" ? kept : largestWith(train.checkpoint), kept};
}

Status Compiler::advance(ModuleOp module, Stage stage, const CompilerOptions &options,
                         std::function<Status(PassManager &)> configure) {
  Stage from = stageOf(module);
  if (failed(checkValues(module)))
    return state->errors.take("not a module of tensors");
  if (from == Stage::model && failed(checkAttributeNames(module)))
    return state->errors.take("not a model");
  if (module.getBody()->empty())
    return Status::error("the module is empty: expected a model, with a function @predict or @loss");
  GPUC_RETURN_IF_ERROR(checkUndecided(module, from, options));
  GPUC_RETURN_IF_ERROR(checkPredict(module, from, options));
  PipelineOptions train = options.train;
  train.target = targetOf(module, options);
  GPUC_RETURN_IF_ERROR(checkGraphs(module, train.target, options));
  train.checkpoint = policyOf(module, options);
  Cures cures(module, train, options.memoryBudget);
  const bool chooses = from < Stage::trainStep && (train.checkpoint == kBudgetPolicy || options.tradeoff);
  std::optional<int64_t> kept;
  if (stage == Stage::plan && from < Stage::trainStep && !chooses && train.checkpoint != "none")
    kept = peakWith("none", module, train, from);
  if (chooses)
    train.checkpoint.clear(); // so far

  state->kernels.reset(); // of another module
  if (options.emits && stage == Stage::plan && from <= Stage::trainStep)
    state->kernels = hostCompilerFor(train.target, codegenOptions(module, options));
  // LLVM is at work with @predict's kernels while the train step's are made; on what a budget may change, and
  // on what was made before, when it is there.
  if (state->kernels && !chooses)
    train.onKernels = [&](func::FuncOp function) { gpuc::beginKernels(function, *state->kernels); };

  auto toExpanded = [&](PassManager &passes) { buildExpandedStepPipeline(passes, train, from); };
  auto toStep = [&](PassManager &passes) {
    if (stage == Stage::model)
      buildRecipePipeline(passes, train);
    else if (from < Stage::trainStep)
      buildStepKernelsPipeline(passes, train, from);
    else if (from == Stage::trainStep)
      finishStep(passes);
  };
  auto toPlan = [&](PassManager &passes) {
    if (stage == Stage::plan)
      buildPlanPipeline(passes, train, from);
  };
  // Up to here a model may be at fault, and the pass behind which that shows says where. What follows is the
  // compiler's own: it stands at doors, is verified whole where it ends, and took a quarter more time with
  // MLIR's verifier behind each pass.
  enum class Verifies { EachPass, TheEnd, Later };
  auto run = [&](Verifies verifies,
                 std::initializer_list<llvm::function_ref<void(PassManager &)>> parts) -> Status {
    PassManager passes(&state->context);
    GPUC_RETURN_IF_ERROR(configure(passes));
    passes.enableVerifier(verifies == Verifies::EachPass);
    for (auto part : parts)
      part(passes);
    if (failed(passes.run(module)) || (verifies == Verifies::TheEnd && failed(verify(module))))
      return state->errors.take("compilation failed");
    return okStatus();
  };
  if (stage != Stage::model && from < Stage::trainStep)
    GPUC_RETURN_IF_ERROR(run(Verifies::EachPass, {toExpanded}));
  if (chooses && stage != Stage::model) {
    GPUC_RETURN_IF_ERROR(run(Verifies::TheEnd, {toStep}));
    GPUC_RETURN_IF_ERROR(
        chooseKept(module, options, train.target, [&](int64_t least) { return cures.waysOut(least); }));
    beginKernels(module);
    GPUC_RETURN_IF_ERROR(run(Verifies::TheEnd, {toPlan}));
  } else if (stage != Stage::plan) {
    GPUC_RETURN_IF_ERROR(run(stage == Stage::model ? Verifies::EachPass : Verifies::TheEnd, {toStep}));
  } else {
    GPUC_RETURN_IF_ERROR(run(Verifies::Later, {toStep}));
    beginKernels(module);
    GPUC_RETURN_IF_ERROR(run(Verifies::TheEnd, {toPlan}));
  }
  if (kept)
    warnIfNothingIsFreed(module, train.checkpoint, *kept);
  if (stage == Stage::plan)
    GPUC_RETURN_IF_ERROR(checkFits(peakOf(module), options, cures));
  if (stage == Stage::trainStep && options.memoryBudget && options.train.checkpoint != kBudgetPolicy)
    GPUC_RETURN_IF_ERROR(checkFits(peakOfStep(module, train), options, cures));
  if (stage == Stage::plan && failed(checkProfile(module, costModelOf(train.target, options))))
    return state->errors.take("not a profile of this plan");
  if (stage != Stage::model)
    writeChoices(module, options);
  else if (train.batch != 0)
    writeBatch(module, train.batch);
  if (stage == Stage::model)
    module->removeAttr(kTrainingAttr); // of a text that may be changed by hand
  return okStatus();
}

Status Compiler::chooseKept(ModuleOp module, const CompilerOptions &options, const std::string &target,
                            llvm::function_ref<std::string(int64_t)> waysOut) {
  const bool isBudget = options.train.checkpoint == kBudgetPolicy;
  // What the model says is one of the choices then.
  FailureOr<CheckpointPolicy> policy =
      takePolicy(isBudget ? kModelPolicy.str() : options.train.checkpoint, module);
  PlanOptions planOptions = options.train;
  planOptions.target = target;
  PlanChoices choices(module, planOptions, costModelOf(target, options));
  if (failed(policy) || failed(choices.explore(policy->text(), /*placesAll=*/options.tradeoff)))
    return state->errors.take("no plan was found");
  FailureOr<std::vector<TradeoffPoint>> curve = std::vector<TradeoffPoint>();
  if (options.tradeoff && failed(curve = choices.tradeoff().curve()))
    return state->errors.take("no plan was found");
  if (!isBudget)
    choices.choose(*llvm::find_if(*curve, [](const TradeoffPoint &point) { return point.isPolicys; }));
  else if (failed(choices.chooseWithin(*options.memoryBudget, budgetOf(options), waysOut)))
    return state->errors.take("no plan was found");
  state->tradeoff = describe(*curve, choices.chosen());
  state->bound = choices.chosen()->leastNanoseconds;
  return okStatus();
}

Status Compiler::askDevices(ModuleOp module, const CompilerOptions &options,
                            const std::vector<const NamedDevice *> &devices) {
  if (stageOf(module) != Stage::model)
    return Status::error("--devices needs a model: this text is made for one target already");
  // What a plan is warned of, it is when it is made.
  ScopedDiagnosticHandler errorsAlone(&state->context, [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
  for (const NamedDevice *device : devices) {
    OwningOpRef<ModuleOp> step = module.clone();
    PipelineOptions train = options.train;
    train.checkpoint = "none";
    train.target = std::string("cuda:") + device->architecture;
    PassManager passes(&state->context);
    buildTrainPipeline(passes, train, Stage::model);
    if (failed(passes.run(*step)))
      return state->errors.take("compilation failed");
    FailureOr<CheckpointPolicy> policy = takePolicy(kModelPolicy, *step); // one of the choices
    FailureOr<DeviceAnswer> answer = failure();
    if (succeeded(policy))
      answer = answerFor(*device, *step, policy->text());
    if (failed(answer))
      return state->errors.take("no plan was found");
    state->answers.push_back(std::move(*answer));
  }
  return okStatus();
}

std::string Compiler::deviceTable() const { return tableOf(state->answers); }

std::string Compiler::tradeoff() const {
  return llvm::formatv("{0:2}\n", llvm::json::Value(llvm::json::Array(state->tradeoff))).str();
}

CodegenOptions Compiler::codegenOptions(ModuleOp module, const CompilerOptions &options) {
  std::optional<KernelCache> &cache = state->cache;
  if (!cache && !options.cacheFolder.empty())
    cache.emplace(options.cacheFolder, options.cacheBytes);
  auto written = module->getAttrOfType<IntegerAttr>(kOptLevelAttr);
  int optLevel = options.optLevel.value_or(written ? written.getInt() : kDefaultOptLevel);
  return {optLevel, options.threads, options.cubin, cache ? &*cache : nullptr};
}

void Compiler::beginKernels(ModuleOp module) {
  if (state->kernels && stageOf(module) == Stage::trainStep)
    gpuc::beginKernels(module, *state->kernels);
}

Result<std::string> Compiler::emit(ModuleOp module, const CompilerOptions &options) {
  FailureOr<std::string> bytes =
      emitPlan(module, {codegenOptions(module, options), options.seed, state->kernels.get()});
  state->kernels.reset();
  if (failed(bytes))
    return state->errors.take("code generation failed");
  std::optional<KernelCache> &cache = state->cache;
  if (cache)
    cache->trim();
  if (cache && !cache->complaint().empty())
    emitWarning(UnknownLoc::get(&state->context))
        << "compiled kernels cannot be kept in '" << options.cacheFolder << "': " << cache->complaint()
        << "; name another folder with --cache-dir, or none with --no-cache";
  return std::move(*bytes);
}

/// Of a module at Stage::plan.
static CostModel costModelOf(ModuleOp module, const CompilerOptions &options) {
  auto target = module->getAttrOfType<plan::TargetAttr>(plan::kTargetAttr);
  return costModelOf(target ? textOf(target) : targetOf(module, options), options);
}

Result<Schedule> Compiler::stepSchedule(ModuleOp module, const CompilerOptions &options) {
  FailureOr<Schedule> schedule = stepScheduleOf(module, costModelOf(module, options));
  if (failed(schedule))
    return state->errors.take("the step cannot be simulated");
  return std::move(*schedule);
}

Result<std::string> Compiler::report(ModuleOp module, const CompilerOptions &options,
                                     const ReportFacts &facts) {
  FailureOr<llvm::json::Object> report = reportOf(module, costModelOf(module, options));
  if (failed(report))
    return state->errors.take("the report failed");
  (*report)["compile_ms"] = facts.compileMilliseconds;
  (*report)["library_bytes"] =
      facts.libraryBytes ? llvm::json::Value(*facts.libraryBytes) : llvm::json::Value(nullptr);
  (*report)["library_bytes_source"] = facts.librarySource;
  if (!state->answers.empty())
    (*report)["devices"] = describe(state->answers);
  if (state->bound)
    (*report)["bound_us"] = *state->bound / 1000;
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(*report))).str();
}

} // namespace gpuc
