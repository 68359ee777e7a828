// What gpuc-compile tells of a plan in files beside it: its report, and the plans that it could have made.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

namespace gpuc {

/// What a command does, and is predicted to take each time (docs/report.md).
struct WorkItem {
  std::string entry, kind, name, layer;
  bool backward = false;
  double flops = 0, bytes = 0;
  double executions = 0;
  double predicted_us = 0;
};

/// The rates of the predictions.
struct PredictedRates {
  double flops_per_us = 0;
  double bytes_per_us = 0;
};

struct CompilerReport {
  std::vector<WorkItem> work;
  PredictedRates rates;
};

/// Of --report=FILE. An error if it is the report of another plan.
Result<CompilerReport> readReport(const std::string& path, const PlanInfo& plan);

/// A plan that there could have been, by what it keeps for the backward pass.
struct TradeoffPoint {
  std::string kept;
  uint64_t peak_bytes = 0;
  double predicted_step_us = 0;
  bool chosen = false;
};

/// Of --report-tradeoff. An error if another plan was chosen.
Result<std::vector<TradeoffPoint>> readTradeoff(const std::string& path, const PlanInfo& plan);

}  // namespace gpuc
