//===- Blocks.h - Layers that are computed again as a whole ------------------===//
#pragma once

#include "passes/recompute/StepForward.h"

#include "mlir/Support/LLVM.h"

#include <string>
#include <vector>

namespace gpuc {

/// What is wrong with a pattern of layers' names, as a shell matches files; empty if nothing is.
std::string findMalformedBlock(llvm::StringRef pattern);

/// Of an op's layer, `h.0.attn.c_attn`, the outermost that a pattern matches is its block: of `h.*` it is
/// `h.0`. The numbers of the values that are not computed again with their block: those of none, and those
/// that another one reads. Fails, with an error, for a pattern that matches no layer.
mlir::FailureOr<llvm::BitVector> valuesBetweenBlocks(const StepForward &step,
                                                     const std::vector<std::string> &patterns);

} // namespace gpuc
