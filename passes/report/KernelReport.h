//===- KernelReport.h - What each command of a plan does, as JSON -------------===//
#pragma once

#include "dialects/plan/PlanOps.h"
#include "passes/cost/CostModel.h"

#include "llvm/Support/JSON.h"

namespace gpuc {

/// How often the repeats around a command execute it in a run of its program.
int64_t executionsOf(plan::CommandOpInterface command);

/// What commands of a placed program are predicted to take, if it runs over and over.
class Prediction {
public:
  Prediction(plan::ProgramOp program, const CostModel &cost);

  /// One execution: of a parallel the fork alone, if there is one, of a repeat going from one iteration to
  /// the next, as their commands count for themselves.
  double nanosecondsOf(plan::CommandOpInterface command) const;

  /// How many commands were seen in cost.profile(), how many it has of other sizes, and how many there are.
  int64_t seen() const { return seen_.size(); }
  int64_t ofOtherSizes() const { return ofOtherSizes_; }
  int64_t commands() const { return commands_; }

  WorkTable &works() const { return works_; }

private:
  void findSeen(plan::ProgramOp program, const Profile &profile);
  double alone(plan::CommandOpInterface command) const;
  bool isWorthAFork(plan::ParallelOp parallel) const;
  double reckoned(plan::CommandOpInterface command) const;

  const CostModel &cost_;
  mutable WorkTable works_;
  llvm::DenseMap<mlir::Operation *, Traffic> traffic_;
  llvm::DenseMap<mlir::Operation *, double> seen_; ///< What one execution took.
  llvm::DenseSet<mlir::Operation *> forked_;       ///< Parallels whose parts threads take.
  int64_t commands_ = 0, ofOtherSizes_ = 0;
};

/// All that computes something in any program, in the order of each: docs/report.md explains each field.
llvm::json::Array workListOf(mlir::ModuleOp module, const CostModel &cost);

} // namespace gpuc
