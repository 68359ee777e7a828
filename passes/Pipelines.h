//===- Pipelines.h - The way of a model through the passes ------------------===//
#pragma once

#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpuc {

/// How far a module has come: a model; functions in place of its recipe; functions whose every op has a
/// kernel or a library call; commands; commands on streams; commands on streams over placed buffers.
enum class Stage { model, expanded, trainStep, commands, streams, plan };

/// What the way to the train step depends on. gpuc-opt's pipelines and gpuc-compile share it.
struct PipelineOptions {
  int64_t batch = 0; // rows per rank and microbatch; 0 takes the recipe's
  /// Entries of the recipe that are said anew, key and text: {"optimizer", "sgd:lr=0.1"}, {"clip_norm", "1"}.
  /// One that is a list has a pair for each of its specs.
  std::vector<std::pair<std::string, std::string>> recipe;
  int64_t seed = -1;           // the plan's default; -1 keeps the recipe's
  bool fuse = true;            // off, each op is a kernel of its own
  std::string target = "host"; // host[:CPU] or cuda:ARCHITECTURE: what it has kernels for stays whole
  /// What is kept for gradients and what computed again: gpuc-checkpoint's policy. Empty: nobody has chosen
  /// yet.
  std::string checkpoint = kModelPolicy.str();
  bool checkNumerics = false; // the train step counts what is NaN or infinite, by the op that made it
  std::string link = "";      // what ranks exchange by (cost/Link.h); empty: what the target's do
  int64_t bucketBytes = 0;    // most bytes of a bucket; 0: what suits the link
  bool predict = true;        // off, @predict is no entry of the plan
  /// Told of each function when its ops have become kernels: what comes later adds to these, and changes
  /// none.
  std::function<void(mlir::func::FuncOp)> onKernels = {};
};

/// What the way from there to the plan depends on.
struct PlanOptions {
  std::string target = "host";
  std::string link = {};
  int64_t bucketBytes = 0;
  bool placesByGreedies = false; ///< Alone: for what the plan takes at the least.

  PlanOptions() = default;
  PlanOptions(std::string target) : target(std::move(target)) {}
  PlanOptions(const PipelineOptions &options)
      : target(options.target), link(options.link), bucketBytes(options.bucketBytes) {}
};

/// What --emit=gpuc is more than the model that was read: the command line's wishes in its recipe.
void buildRecipePipeline(mlir::OpPassManager &passes, const PipelineOptions &options);

/// From a model and its recipe, or from where a module at a later stage stands, to functions in which
/// everything is explicit and every op has a kernel or a library call.
void buildTrainPipeline(mlir::OpPassManager &passes, const PipelineOptions &options,
                        Stage from = Stage::model);

/// The two halves of that: to functions in which everything is explicit, which the model may forbid, and from
/// there to kernels and library calls.
void buildExpandedStepPipeline(mlir::OpPassManager &passes, const PipelineOptions &options,
                               Stage from = Stage::model);
void buildStepKernelsPipeline(mlir::OpPassManager &passes, const PipelineOptions &options,
                              Stage from = Stage::model);

/// The same as buildTrainPipeline without training: @init, @predict and, with a recipe, @eval_step. What the
/// recipe, and `options` for it, says of training is left aside.
void buildEvalPipeline(mlir::OpPassManager &passes, const PipelineOptions &options);

/// From those functions, or from where a module at a later stage stands, to a placed and verified plan.
void buildPlanPipeline(mlir::OpPassManager &passes, const PlanOptions &options,
                       Stage from = Stage::trainStep);

/// The same without the proof: enough to know what a plan would take in memory and time.
void buildUnprovenPlanPipeline(mlir::OpPassManager &passes, const PlanOptions &options,
                               Stage from = Stage::trainStep);

/// Registers the dialects that the compiler reads and writes.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Registers every pass and pipeline under the name by which `gpuc-opt` runs it.
void registerAllPasses();

} // namespace gpuc
