//===- Kept.h - What a row is computed once for ------------------------------===//
#pragma once

#include "passes/codegen/Kernel.h"

namespace gpuc::codegen {

/// What a kernel keeps of the row that it is in, on the stack, from the sweep that computes it to a later
/// one: values with an element for each of the row's that cost more to compute than to load. For each sweep,
/// those that it stores. What is cheap, and what would not fit, is computed again; bits are the same either
/// way.
llvm::SmallVector<llvm::SmallVector<mlir::Value, 1>> keptValues(const Kernel &kernel);

} // namespace gpuc::codegen
