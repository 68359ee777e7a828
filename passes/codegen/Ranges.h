//===- Ranges.h - Where along a dimension a kernel's formula changes --------===//
#pragma once

#include "passes/codegen/Kernel.h"

namespace gpuc::codegen {

/// The group cut so that whole vectors of so many lanes see one operand of a concat, or only what lies inside
/// or outside a pad's operand. Where vectors see more than one they have a range in between. All ranges but
/// the last end at a multiple of `lanes`; there is one where nothing is gained, or too much code.
llvm::SmallVector<Range> rangesAlong(const Kernel &kernel, size_t group, int64_t lanes);

} // namespace gpuc::codegen
