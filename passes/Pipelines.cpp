//===- Pipelines.cpp - The way of a model through the passes ----------------===//

#include "passes/Pipelines.h"

#include "dialects/plan/PlanOps.h"
#include "passes/Passes.h"
#include "passes/recipe/RecipeTexts.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace gpuc {

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

namespace {

/// Folds what is known, shares what is computed twice.
void cleanUp(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

/// Adds passes with doors behind them: whoever breaks what holds of a stage is named where it happens. The
/// text of a later stage may be anyone's, and hold less.
class Doors {
public:
  Doors(OpPassManager &passes, Stage from) : passes_(passes), isModel_(from == Stage::model) {}

  void add(std::unique_ptr<Pass> pass, StringRef stage) {
    std::string name = pass->getArgument().str();
    passes_.addPass(std::move(pass));
    if (isModel_)
      passes_.addPass(createVerifyStagePass({stage.str(), name}));
  }

private:
  OpPassManager &passes_;
  bool isModel_;
};

/// What both pipelines take.
template <typename Flags> struct ModelFlags : PassPipelineOptions<Flags> {
  template <typename T> using Option = typename PassPipelineOptions<Flags>::template Option<T>;

  Option<int64_t> batch{*this, "batch", llvm::cl::desc("Rows of a batch; 0 takes the recipe's"),
                        llvm::cl::init(0)};
  Option<int64_t> seed{*this, "seed", llvm::cl::desc("The plan's default seed; -1 keeps the recipe's"),
                       llvm::cl::init(-1)};
  Option<bool> fuse{*this, "fuse", llvm::cl::desc("Off, each op is a kernel of its own"),
                    llvm::cl::init(true)};
  Option<std::string> target{
      *this, "target", llvm::cl::desc("host[:CPU] or cuda:ARCHITECTURE; what it has kernels for stays whole"),
      llvm::cl::init("host")};
};

struct EvalPipelineFlags : ModelFlags<EvalPipelineFlags> {};

struct TrainPipelineFlags : ModelFlags<TrainPipelineFlags> {
  Option<std::string> entries{*this, "entries",
                              llvm::cl::desc("Instead of the recipe's entries: KEY=VALUE;KEY=VALUE…")};
  Option<std::string> optimizer{*this, "optimizer", llvm::cl::desc("Short for its entry: NAME:key=value,…")};
  Option<std::string> checkpoint{
      *this, "checkpoint",
      llvm::cl::desc(
          "What is kept for gradients: none, sqrt, full, save=OP,OP…, blocks=LAYER,LAYER… or model, "
          "as gpuc.checkpoint says"),
      llvm::cl::init(kModelPolicy.str())};
  Option<bool> checkNumerics{*this, "check-numerics",
                             llvm::cl::desc("Count what is NaN or infinite, by the op that made it"),
                             llvm::cl::init(false)};
};

struct PlanPipelineFlags : PassPipelineOptions<PlanPipelineFlags> {
  Option<std::string> target{*this, "target", llvm::cl::desc("host[:CPU] or cuda:ARCHITECTURE"),
                             llvm::cl::init("host")};
};

/// What can be said of a model as it was written, and of nothing that is made of it.
void checkModel(OpPassManager &passes) {
  // Functions that nobody calls are entries as long as none is a pass's own.
  passes.addPass(createFindEntriesPass());
  // An index that may be larger than what it names is an error that the model's own ops can be blamed for.
  passes.addPass(createCheckRangesPass());
}

/// From functions in which everything is explicit to kernels and library calls.
void buildKernels(OpPassManager &passes, const PipelineOptions &options, Doors &doors) {
  cleanUp(passes);
  // Composites that the target has no kernels for.
  doors.add(createDecomposePass({/*keep=*/{}, options.target}), "entries");
  cleanUp(passes);
  // Loops over time keep only what hangs on what they carry: weights' gradients leave them here.
  doors.add(createHoistFromScansPass(), "entries");
  cleanUp(passes);
  // Behind decomposition, where norms are sums and elements; before fusion, which takes transposes into
  // kernels.
  doors.add(createLayoutPass({options.target}), "entries");
  // Zeros around what a loop only reads are put there once, before it.
  doors.add(createHoistFromScansPass(), "entries");
  cleanUp(passes);
  // What a library does to the elements of a product is no kernel's any more.
  if (options.fuse)
    doors.add(createEpiloguesPass({options.target}), "entries");
  // Everything but library calls becomes kernels.
  if (!options.checkNumerics)
    return doors.add(createFusePass({options.fuse, options.target}, options.onKernels), "kernels");
  doors.add(createFusePass({options.fuse, options.target}, options.onKernels), "entries");
  // Only now does one function hold both: no pass can let the step hang on who counts what.
  doors.add(createJoinChecksPass(), "kernels");
}

} // namespace

void buildRecipePipeline(OpPassManager &passes, const PipelineOptions &options) {
  passes.addPass(createOverrideRecipePass({joinRecipeTexts(options.recipe), /*optimizer=*/"", options.seed}));
}

void buildTrainPipeline(OpPassManager &passes, const PipelineOptions &options, Stage from) {
  buildExpandedStepPipeline(passes, options, from);
  buildStepKernelsPipeline(passes, options, from);
}

void buildExpandedStepPipeline(OpPassManager &passes, const PipelineOptions &options, Stage from) {
  Doors doors(passes, from);
  // The command line has the last word on the recipe; whatever follows reads the recipe alone.
  buildRecipePipeline(passes, options);
  checkModel(passes);
  // What has rows is seen by the `?` in its shape, as long as there is one.
  passes.addPass(createSyncBatchNormPass());
  if (options.fuse)
    passes.addPass(createSliceBatchPass({options.batch, options.target}));
  // Shapes must be known before anything can be counted.
  passes.addPass(createSpecializeBatchPass({options.batch}));
  // The mask must be there when losses are differentiated.
  passes.addPass(createMaskPaddingPass());
  // No copy of an image with zeros around it, and no cotangent of what is cut off.
  passes.addPass(createFoldPaddingPass());
  // Long loops are cut before they are differentiated: forward and backward pass then go by like chunks of
  // time.
  passes.addPass(createCutScansPass());
  // What leaves a loop over time now has a gradient that never was in one.
  passes.addPass(createHoistFromScansPass());
  // Large logits vanish into their loss, with a derivative of its own.
  passes.addPass(createFuseLinearLossesPass({options.target}));
  // Before derivatives are taken: the backward pass is of the precision of the forward pass.
  passes.addPass(createMixedPrecisionPass({options.target}));
  // Scores of attention that a model spells out vanish likewise. The casts that are there now are no
  // hindrance.
  if (options.fuse)
    passes.addPass(createFuseAttentionPass({options.target}));
  // What the gradients of max pooling, and of relu beside it, keep is decided before there are any.
  passes.addPass(createReluBehindPoolingPass());
  passes.addPass(createNarrowIndicesPass());
  // What predictions and evaluation differentiate is what they compute themselves: in inference form.
  passes.addPass(createEvaluateGradientsPass());
  // Derivatives are taken of whole ops: a composite's own is better than its definition's. The model's own
  // come first: which variables the loss depends on is seen once they are there.
  passes.addPass(createAutodiffPass());
  // What the recipe wants to be differentiated is a gradient like any other.
  passes.addPass(createDifferentiateLossPass());
  passes.addPass(createAutodiffPass());
  // The step over all parts of the batch, evaluation, prediction and initialisation as functions of their
  // own.
  doors.add(createExpandRecipePass({/*training=*/true, options.predict}), "step");
}

void buildStepKernelsPipeline(OpPassManager &passes, const PipelineOptions &options, Stage from) {
  Doors doors(passes, from);
  if (options.checkNumerics) {
    // Ops are counted whole, by the names that the model has, in a copy of the step. What leaves loops over
    // time leaves them first: in them a count would hold it back.
    cleanUp(passes);
    passes.addPass(createHoistFromScansPass());
    cleanUp(passes);
    doors.add(createCheckNumericsPass(), "entries");
  }
  buildKernels(passes, options, doors);
  // Behind fusion: what is computed again has the kernel of what it repeats, and nothing makes one of the
  // two.
  if (!options.checkpoint.empty())
    doors.add(createCheckpointPass({options.checkpoint}), "kernels");
}

void buildEvalPipeline(OpPassManager &passes, const PipelineOptions &options) {
  Doors doors(passes, Stage::model);
  // What is not trained needs no optimizer, no gradients and no slots; the rest is as for training.
  passes.addPass(createOverrideRecipePass({/*entries=*/"", /*optimizer=*/"", options.seed}));
  checkModel(passes);
  passes.addPass(createSpecializeBatchPass({options.batch}));
  passes.addPass(createMaskPaddingPass());
  passes.addPass(createFoldPaddingPass());
  passes.addPass(createFuseLinearLossesPass({options.target}));
  passes.addPass(createMixedPrecisionPass({options.target}));
  if (options.fuse)
    passes.addPass(createFuseAttentionPass({options.target}));
  doors.add(createExpandRecipePass({/*training=*/false}), "step");
  buildKernels(passes, options, doors);
}

void buildUnprovenPlanPipeline(OpPassManager &passes, const PlanOptions &options, Stage from) {
  Doors doors(passes, from);
  // Tensors become buffers, ops commands.
  if (from < Stage::commands)
    doors.add(createToPlanPass({options.target}), "commands");
  if (from < Stage::streams) {
    // The order decides how much is live at once, so it comes before memory is placed.
    doors.add(createOrderPass(), "commands");
    // By the order it is known what is live, and when each gradient is computed.
    passes.addPass(createUpdateInProductsPass());
    passes.addPass(createBucketAllReducesPass({options.link, options.bucketBytes}));
    // Streams and events decide what may happen at once, and so what may share bytes.
    passes.addPass(createAssignStreamsPass());
    // What can wait for the last of its kind without more bytes being live becomes one launch: when bytes are
    // live is known now.
    passes.addPass(createGroupLaunchesPass());
  }
  if (from < Stage::plan) {
    PlaceBuffersPassOptions placing;
    placing.greedies = options.placesByGreedies;
    passes.addPass(createPlaceBuffersPass(placing));
    // Behind placement: parts may not share bytes at any time.
    passes.addPass(createParallelizePass());
  }
}

void buildPlanPipeline(OpPassManager &passes, const PlanOptions &options, Stage from) {
  buildUnprovenPlanPipeline(passes, options, from);
  // Nothing leaves the compiler unproven.
  passes.addPass(createVerifyPlanPass());
}

void registerAllDialects(DialectRegistry &registry) {
  registry.insert<func::FuncDialect, ir::GpucDialect, plan::PlanDialect>();
}

void registerAllPasses() {
  registerGpucPasses();
  registerTransformsPasses();
  PassPipelineRegistration<TrainPipelineFlags>(
      "gpuc-train-pipeline",
      "From a model with a recipe to a train step whose every op has a kernel or a library call",
      [](OpPassManager &passes, const TrainPipelineFlags &flags) {
        RecipeTexts recipe = splitRecipeTexts(flags.entries);
        if (!flags.optimizer.empty())
          recipe.emplace_back("optimizer", flags.optimizer);
        buildTrainPipeline(passes, {flags.batch, recipe, flags.seed, flags.fuse, flags.target,
                                    flags.checkpoint, flags.checkNumerics});
      });
  PassPipelineRegistration<EvalPipelineFlags>(
      "gpuc-eval-pipeline",
      "From a model to evaluation and prediction alone, their every op with a kernel or a library call",
      [](OpPassManager &passes, const EvalPipelineFlags &flags) {
        buildEvalPipeline(passes, {flags.batch, /*recipe=*/{}, flags.seed, flags.fuse, flags.target});
      });
  PassPipelineRegistration<PlanPipelineFlags>("gpuc-plan-pipeline",
                                              "From a train step to a placed and verified plan",
                                              [](OpPassManager &passes, const PlanPipelineFlags &flags) {
                                                buildPlanPipeline(passes, flags.target.getValue());
                                              });
}

} // namespace gpuc
