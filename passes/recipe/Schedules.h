//===- Schedules.h - What becomes of the learning rate ----------------------===//
//
// The registry of schedules: names, keys, defaults and numbers are those of PyTorch's
// torch.optim.lr_scheduler.
//
#pragma once

#include "passes/base/Specs.h"

namespace gpuc {

struct ScheduleForm;

/// The learning rate as a function of the updates made so far.
class LearningRate {
public:
  /// Of a recipe's `schedule`: specs that follow one another, each but the last with the `steps` that it
  /// lasts; null is a rate that never changes. Unknown names and keys, and values that make no schedule, are
  /// errors.
  static llvm::FailureOr<LearningRate> fromSpecs(mlir::ArrayAttr specs, EmitError emitError);

  /// Builds the rate, a tensor<f64>, of the update that follows `completedUpdates` (tensor<i64>), where the
  /// optimizer's own is `base`.
  mlir::Value build(mlir::OpBuilder &builder, mlir::Location location, mlir::Value completedUpdates,
                    double base) const;

  /// Whether whoever runs the plan says the rate, by writing a variable: then there is nothing to build.
  bool isGiven() const;

  /// What of an optimizer's numbers whoever runs the plan says besides, each by a variable of its own.
  llvm::SmallVector<llvm::StringRef> givenNumbers() const;

private:
  /// A schedule with all its numbers, and the number of updates after which it holds.
  struct Phase {
    const ScheduleForm *form;
    SpecNumbers numbers;
    int64_t begin;
  };
  llvm::SmallVector<Phase> phases_;
};

} // namespace gpuc
