//===- ElementTypes.h - What tensors may hold -------------------------------===//
#pragma once

#include "mlir/IR/Types.h"

namespace gpuc::ir {

/// f64 f32 f16 bf16 i64 i32 i8 ui8 i1: those of Gpuc_Element, for types that no op of the dialect has
/// checked.
bool isElement(mlir::Type type);

} // namespace gpuc::ir
