//===- Segments.h - Kernels of several index spaces --------------------------===//
//
// A segmented kernel is several kernels in one launch. Its block holds nothing but `gpuc.fused`, each a
// kernel by itself over arguments of the block, and yields each of their results once. The segments read
// nothing of one another, and write no buffer that another one reads, so it does not matter in which order
// they run, or whether at once.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/Support/LLVM.h"

namespace gpuc::codegen {

struct Segment {
  mlir::Block *body;
  /// Which of the whole kernel's buffers its own are: those of its arguments, then those of its results.
  llvm::SmallVector<int64_t> operands;
};

/// Whether the block is meant to be a segmented kernel.
bool isSegmented(mlir::Block &body);

/// What the top of this file says; whether each segment is a kernel is not asked.
mlir::LogicalResult checkSegments(mlir::Block &body);

/// Of a segmented kernel, in the order of its block.
llvm::SmallVector<Segment> segmentsOf(mlir::Block &body);

} // namespace gpuc::codegen
