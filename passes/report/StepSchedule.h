//===- StepSchedule.h - What simulate/ has to know of a plan's step ----------===//
#pragma once

#include "passes/cost/CostModel.h"
#include "passes/simulate/Schedule.h"

#include "mlir/IR/BuiltinOps.h"

namespace gpuc {

/// The commands of @train_step, on their streams, with times as predicted by `cost`; repeats in which streams
/// are ordered, or ranks exchange, iteration by iteration, and others as one command. Fails, with an error,
/// if there is no such program, or ranks exchange on several of its streams.
mlir::FailureOr<Schedule> stepScheduleOf(mlir::ModuleOp module, const CostModel &cost);

} // namespace gpuc
