//===- TraceName.h - What traces of gpuc-run call a command --------------------===//
#pragma once

#include "dialects/plan/PlanOps.h"

namespace gpuc {

/// The name of its events; empty of a loop, whose commands have their own.
std::string traceNameOf(plan::CommandOpInterface command);

} // namespace gpuc
