//===- Peaks.h - How much memory other plans of a model would take -----------===//
//
// Each is made as far as its arena's bytes. None where there is no such plan, without a word: what is wrong
// with a module is said of the plan that is asked for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Pipelines.h"
#include "passes/cost/CostModel.h"

#include <optional>

namespace gpuc {

/// Of the plan with such options.
std::optional<int64_t> peakWith(const PipelineOptions &options, mlir::ModuleOp module, Stage from);
std::optional<int64_t> peakWith(llvm::StringRef policy, mlir::ModuleOp module, PipelineOptions options,
                                Stage from);

/// The least of the plans that a budget would choose from.
std::optional<int64_t> leastPeakWith(PipelineOptions options, mlir::ModuleOp model, const CostModel &cost);

/// Of the plan that a finished step becomes.
std::optional<int64_t> peakOfStep(mlir::ModuleOp step, const PipelineOptions &options);

} // namespace gpuc
