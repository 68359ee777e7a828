//===- TimeFirst.h - Loops over the first dimension --------------------------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc {

/// Puts a scan whose stacks have time first in the place of one with `batch_first`: its inputs and outputs
/// are transposed. Needs static shapes.
void putTimeFirst(ir::ScanOp scan);

} // namespace gpuc
