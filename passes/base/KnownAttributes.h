//===- KnownAttributes.h - That a model's attributes are those that there are ------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace gpuc {

/// An error at what stands in braces, in the text of a model, and is none of its op's or its argument's
/// names: MLIR keeps whatever it does not know, and a `casual` attention would see the future.
mlir::LogicalResult checkAttributeNames(mlir::ModuleOp model);

} // namespace gpuc
