//===- KernelCode.h - Machine code for the kernels of a plan ----------------===//
#pragma once

#include "dialects/plan/PlanOps.h"
#include "passes/codegen/Codegen.h"

#include "runtime/plan/plan_generated.h"

#include <string>
#include <vector>

namespace gpuc {

/// What a plan's kernels became on its target.
struct KernelCode {
  struct Object {
    fb::CodeKind kind;
    std::string architecture;
    std::string bytes;
  };
  struct Schedule {
    std::string symbol;
    uint64_t tiles = 0, grain = 0; // host
    uint64_t rows = 0;             // host, where the kernel is to say them
    std::vector<bool> byRows;      // host, likewise
    uint32_t grid = 0, block = 0;  // cuda
  };

  plan::TargetKind targetKind = plan::TargetKind::host;
  std::string targetName;
  std::vector<std::string> targetFeatures;
  std::vector<std::pair<std::string, std::string>> libraries; // name, version
  std::vector<Object> objects;
  llvm::DenseMap<mlir::Operation *, Schedule> schedules; // of each plan.kernel
};

/// Compiles every plan.kernel of the module for the module's plan.target. Errors are diagnostics at the
/// kernel, or at the module if the target is unknown.
mlir::FailureOr<KernelCode> compileKernels(mlir::ModuleOp module, const CodegenOptions &options);

} // namespace gpuc
