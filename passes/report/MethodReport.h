//===- MethodReport.h - How the host computes a product, and why, as JSON -----===//
#pragma once

#include "dialects/plan/PlanOps.h"

#include "llvm/Support/JSON.h"

namespace gpuc {

/// Adds to a product's or convolution's entry in the list of work what docs/report.md says of `method`, `why`
/// and `wasted`, if it is the host's.
void describeMethod(plan::CommandOpInterface command, llvm::json::Object &entry);

} // namespace gpuc
