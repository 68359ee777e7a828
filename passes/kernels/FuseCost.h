//===- FuseCost.h - Whether one kernel is faster than two -------------------===//
//
// All figures by which gpuc-fuse chooses. They come from shapes and from the target's description alone and
// are rough: they decide speed, never results.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/target/TargetDescription.h"

namespace gpuc {

/// Kernels with more ops than this are not widened: registers would spill, and compiling slows down.
constexpr size_t kMaxKernelOps = 96;

/// Whether these ops may be computed anew for each element that their result is broadcast to.
bool isCheapToRepeat(llvm::ArrayRef<mlir::Operation *> ops);

/// Of more ops than this no result is computed once more by its readers.
constexpr size_t kMostRepeatedOps = 16;

/// Ops that are to become one kernel, what it reads, and what it yields.
struct KernelParts {
  llvm::ArrayRef<mlir::Operation *> ops;
  llvm::ArrayRef<mlir::Value> inputs, outputs;
};

/// How long the kernel takes with nothing beside it: the bytes that it moves, what it computes twice, on as
/// many cores as its rows can be spread over.
double kernelNanoseconds(const KernelParts &kernel, const TargetDescription &device);

/// How long it takes to compute these ops once more, beside what their kernel takes anyway: what is not
/// cheap.
double repeatNanoseconds(llvm::ArrayRef<mlir::Operation *> ops, const TargetDescription &device);

/// The price of a value that waits in memory from the forward for the backward pass, in time.
double residualNanoseconds(mlir::Value value, const TargetDescription &device);

} // namespace gpuc
