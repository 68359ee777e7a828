//===- Compiler.h - From a file's text to the stage that is asked for -------===//
#pragma once

#include "passes/Pipelines.h"
#include "passes/base/Diagnosis.h"
#include "passes/cost/Profile.h"
#include "passes/cost/Rates.h"
#include "passes/simulate/Schedule.h"
#include "passes/target/Devices.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include "runtime/base/status.h"

#include <functional>
#include <optional>
#include <string>

namespace gpuc {

struct CodegenOptions;

/// The stage of a module, from which the compiler continues.
Stage stageOf(mlir::ModuleOp module);

/// --checkpoint=budget: what is kept is whatever makes the fastest plan that fits.
inline constexpr llvm::StringLiteral kBudgetPolicy = "budget";

/// What of a report only who asks for it can know.
struct ReportFacts {
  int64_t compileMilliseconds = 0;
  std::optional<int64_t> libraryBytes; // that libraries take beside the arena
  std::string librarySource;           // whose word that is, or why nobody knows
};

struct CompilerOptions {
  PipelineOptions train;
  /// That the plan's arena may have. With kBudgetPolicy it is made to fit, else it has to.
  std::optional<int64_t> memoryBudget;
  std::string budgetName;                 // what it was called, "l4" say, if it was not told in bytes
  const NamedDevice *device = nullptr;    // whose rates times are predicted by; null: those of the target
  std::optional<HostRates> rates;         // of this machine, by which times on the host are predicted
  std::shared_ptr<const Profile> profile; // of a plan of the model, which goes before rates
  bool tradeoff = false;                  // whether advance() writes the curve of memory against time
  std::string target = "auto";            // auto, host[:CPU], cuda:sm_90
  std::optional<uint64_t> seed;           // the plan's default
  std::optional<int> optLevel;            // -O: that of the text that is continued from, else 3
  unsigned threads = 0;                   // that generate code; 0: one for each core
  bool noGraphs = false;                  // on CUDA: each command is launched by itself
  bool cubin = true;                      // on CUDA: machine code beside PTX, where there is a ptxas
  bool emits = false;                     // whether emit() will follow, with these options
  std::string cacheFolder;                // of compiled kernels; empty: none
  uint64_t cacheBytes = 1u << 30;         // that it may take
};

/// Rows of a batch; 0: not even one fits.
struct LargestBatch {
  int64_t rows = 0;     // with the policy, or with what a budget chooses
  int64_t rowsKept = 0; // with `none`
};

/// Whether there is such a target, and kernels can be made for it.
Status checkTarget(const std::string &target);

/// The GPU of that name.
Result<const NamedDevice *> findDevice(const std::string &name);

/// What plans for a device are made for; an error if `target` is something else than that, or auto.
Result<std::string> targetOf(const NamedDevice &device, const std::string &target);

/// A context with every dialect that the compiler reads, and with diagnostics kept as one-line errors.
class Compiler {
public:
  /// `warned`: null, and warnings are printed.
  explicit Compiler(std::function<void(Diagnosis)> warned = nullptr);
  ~Compiler();

  /// The parts of an error of this compiler's; where it has none the whole is text.
  Diagnosis diagnosisOf(const Status &error) const;

  /// Parses .mlir text of any stage. Errors: "FILE:LINE:COLUMN: …".
  Result<mlir::OwningOpRef<mlir::ModuleOp>> parse(const std::string &text, const std::string &fileName);

  /// Whether `texts` say the entry `key` of a recipe: {"adam:lr=0.1"} an optimizer, say. Lists take several.
  Status checkRecipe(const std::string &key, const std::vector<std::string> &texts);

  /// Whether `text` is a policy of gpuc-checkpoint.
  Status checkCheckpoint(const std::string &text);

  /// The largest batch whose plan fits options.memoryBudget (findLargestBatch).
  Result<LargestBatch> largestBatch(mlir::ModuleOp module, const CompilerOptions &options);

  /// What each of these GPUs would make of a model, for deviceTable() and report().
  Status askDevices(mlir::ModuleOp module, const CompilerOptions &options,
                    const std::vector<const NamedDevice *> &devices);
  std::string deviceTable() const;

  /// Runs the passes between the module's stage and `stage`. `configure` may add instrumentation. With
  /// kBudgetPolicy many plans are tried on the way.
  Status advance(mlir::ModuleOp module, Stage stage, const CompilerOptions &options,
                 std::function<Status(mlir::PassManager &)> configure);

  /// The plan file of a module at Stage::plan.
  Result<std::string> emit(mlir::ModuleOp module, const CompilerOptions &options);

  /// The report on a module at Stage::plan, as indented JSON.
  Result<std::string> report(mlir::ModuleOp module, const CompilerOptions &options, const ReportFacts &facts);

  /// The step of a module at Stage::plan, for Simulator.h, with times as predicted.
  Result<Schedule> stepSchedule(mlir::ModuleOp module, const CompilerOptions &options);

  /// What options.tradeoff asks for: the plans that there could have been, as indented JSON.
  std::string tradeoff() const;

private:
  Status chooseKept(mlir::ModuleOp module, const CompilerOptions &options, const std::string &target,
                    llvm::function_ref<std::string(int64_t least)> waysOut);
  CodegenOptions codegenOptions(mlir::ModuleOp module, const CompilerOptions &options);
  /// Of a train step whose plan will be emitted.
  void beginKernels(mlir::ModuleOp module);

  struct State;
  std::unique_ptr<State> state;
};

} // namespace gpuc
