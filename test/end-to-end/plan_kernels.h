//===- plan_kernels.h - A CUDA plan's kernels on a fake GPU -----------------===//
#pragma once

#include "runtime/plan/plan.h"
#include "test/passes/codegen/cuda_harness.h"
#include "test/runtime/cuda/fake_gpu.h"

#include "mlir/IR/BuiltinOps.h"

namespace gpuc::test {

/// The kernels of a plan, compiled for this CPU from what PTX would be made of.
class PlanKernels {
public:
  /// `module`: what `plan` was made of, in which the kernels still stand.
  PlanKernels(mlir::ModuleOp module, const Plan &plan);

  /// From now on a launch on `gpu` runs them; they must outlive it.
  void define(FakeGpu &gpu) const;

private:
  Plan plan_;
  std::unique_ptr<EmulatedModule> module_;
};

} // namespace gpuc::test
