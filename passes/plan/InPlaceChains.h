//===- InPlaceChains.h - Buffers that lie over one another -------------------===//
#pragma once

#include "passes/plan/Lifetimes.h"

#include "llvm/ADT/EquivalenceClasses.h"

namespace gpuc {

/// Whether the kernel of a launch may write a result over an input of the same size, through whichever of its
/// arguments it reads that.
bool mayWriteOver(plan::LaunchOp launch, plan::KernelOp kernel, plan::AllocOp input, unsigned result);

/// Buffers that share one place because each is written over the one before it: a kernel, or a sum over
/// ranks, reads the one for the last time and may write the other, element by element, in its place; or they
/// are one size and parts of them are needed in turn in each iteration of a parallel repeat.
class InPlaceChains {
public:
  InPlaceChains(mlir::ModuleOp module, plan::ProgramOp program, const Lifetimes &lifetimes);

  /// The buffer that stands for all of a chain.
  plan::AllocOp leader(plan::AllocOp buffer) const {
    return mlir::cast<plan::AllocOp>(chains_.getLeaderValue(buffer));
  }

private:
  void join(plan::LaunchOp launch, const Lifetimes &lifetimes);
  void join(plan::AllReduceOp reduce, const Lifetimes &lifetimes);
  void join(plan::ParallelOp parallel);

  mlir::SymbolTable kernels_;
  mlir::DenseSet<mlir::Value> outputs_; ///< Found once: what all updates read has as many users as there are.
  llvm::EquivalenceClasses<mlir::Operation *> chains_;
  mlir::DenseSet<mlir::Operation *> overwritten_;
};

} // namespace gpuc
