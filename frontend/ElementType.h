//===- ElementType.h - The runtime's element types as MLIR's ----------------===//
#pragma once

#include "runtime/base/data_type.h"

#include "mlir/IR/Builders.h"

namespace gpuc {

/// The MLIR type that holds elements of `type`.
inline mlir::Type elementTypeOf(mlir::OpBuilder &builder, DataType type) {
  switch (type) {
  case DataType::f64:
    return builder.getF64Type();
  case DataType::f32:
    return builder.getF32Type();
  case DataType::f16:
    return builder.getF16Type();
  case DataType::bf16:
    return builder.getBF16Type();
  case DataType::i64:
    return builder.getI64Type();
  case DataType::i32:
    return builder.getI32Type();
  case DataType::i8:
    return builder.getI8Type();
  case DataType::ui8:
    return builder.getIntegerType(8, /*isSigned=*/false);
  case DataType::i1:
    return builder.getI1Type();
  }
  llvm_unreachable("a DataType is one of these");
}

} // namespace gpuc
