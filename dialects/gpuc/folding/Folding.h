//===- Folding.h - What folders share ---------------------------------------===//
//
// Internal to the dialect.
//
#pragma once

#include "dialects/gpuc/TypeChecks.h"

namespace gpuc::ir {

/// The one number of a constant operand as FloatAttr or IntegerAttr, or null.
mlir::Attribute splatOf(mlir::Attribute operand);

} // namespace gpuc::ir
