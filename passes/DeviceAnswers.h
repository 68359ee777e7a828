//===- DeviceAnswers.h - Whether it would fit, on GPUs that are not there ------===//
#pragma once

#include "passes/recompute/Tradeoff.h"
#include "passes/target/Devices.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace gpuc {

/// What a device would make of a model.
struct DeviceAnswer {
  const NamedDevice *device = nullptr;
  PlanFigures kept;              ///< With everything kept.
  std::optional<PlanFigures> in; ///< With what --memory-budget chooses; none if nothing fits.
  std::string keptBy;            ///< The choice, as --report-tradeoff names it.
  int64_t leastBytes = 0;        ///< Of the plans that were tried.
};

/// That on a module at Stage::trainStep which was made for the device's architecture. `policy` is one of the
/// choices.
mlir::FailureOr<DeviceAnswer> answerFor(const NamedDevice &device, mlir::ModuleOp module,
                                        llvm::StringRef policy);

/// For people, and for the report; docs/memory.md and docs/report.md explain them.
std::string tableOf(llvm::ArrayRef<DeviceAnswer> answers);
llvm::json::Array describe(llvm::ArrayRef<DeviceAnswer> answers);

} // namespace gpuc
