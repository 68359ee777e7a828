// Checks what a solver says, sharing nothing with it but the data. Every solution that the compiler or a tool
// uses has passed through here.
#pragma once

#include "passes/placement/Problem.h"
#include "runtime/base/status.h"

namespace gpuc::placement {

/// Whether `solution` places every buffer of `problem` at a multiple of its alignment, within [0, height) and
/// the capacity, without a byte shared by two buffers in conflict, and whether its height is the end of the
/// topmost buffer. The error names the first buffers found at fault and their numbers. O((n + pairs) log n).
Status validate(const Problem& problem, const Solution& solution);

}  // namespace gpuc::placement
