//===- Report.h - What the compiler knows of a plan, as JSON ----------------===//
#pragma once

#include "passes/cost/CostModel.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace gpuc {

/// What a run of @train_step does; nothing, if a plan has none.
struct StepWork {
  int64_t flops = 0;
  int64_t recomputed = 0; ///< Of which.
  int64_t commands = 0;
  int64_t streams = 0;
  int64_t exchanges = 0;  ///< Of ranks.
  double nanoseconds = 0; ///< As predicted.
};
StepWork stepWorkOf(mlir::ModuleOp module, const CostModel &cost);

/// An error if cost.profile() has seen none of the step's commands, a warning if less than half of them.
mlir::LogicalResult checkProfile(mlir::ModuleOp module, const CostModel &cost);

/// Who says what commands take: "uncalibrated", or of which CPU and how many threads rates are.
std::string sourceOf(const CostModel &cost);

/// What times are predicted by.
llvm::json::Object ratesOf(const TargetDescription &device);

/// The figures of a placed plan: its memory to the byte and by category at the instant of its peak, its work,
/// with times as predicted by `cost`, and what the forward pass keeps for the backward pass. docs/report.md
/// explains each field.
mlir::FailureOr<llvm::json::Object> reportOf(mlir::ModuleOp module, const CostModel &cost);

} // namespace gpuc
