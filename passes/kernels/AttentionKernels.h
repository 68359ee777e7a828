//===- AttentionKernels.h - Attention in kernels of its own -----------------===//
#pragma once

#include "passes/kernels/FusedKernel.h"

namespace gpuc {

/// Puts a gpuc.fused in the place of each attention of the block that CUDA has kernels for, with the
/// transposes, slices and reshapes that only it sees (AttentionViews.h), and two in the place of each
/// gradient: one that yields the query's cotangent, and one for those of key and value. Dropout's seed and
/// step become the last two arguments.
void buildAttentionKernels(mlir::Block &block, KernelNames &names);

} // namespace gpuc
