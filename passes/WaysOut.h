//===- WaysOut.h - What takes less memory than the flags that were given -------===//
#pragma once

#include "passes/Pipelines.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace gpuc {

/// The bytes of the plan that a model becomes with such options; none if there is no such plan.
using PeakTrial = llvm::function_ref<std::optional<int64_t>(const PipelineOptions &options)>;

/// For the end of an error: the flags with which a model's plan would take at most `bytes`, or, if there are
/// none, those with which it takes the least, if that is below `least`; and what it takes. A plan was made of
/// each. Empty if there are no such flags.
std::string describeWaysOut(mlir::ModuleOp model, const PipelineOptions &options, int64_t bytes,
                            int64_t least, PeakTrial peakOf);

} // namespace gpuc
