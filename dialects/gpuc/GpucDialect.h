//===- GpucDialect.h - Training graphs over tensors -------------------------===//
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"

namespace gpuc::ir {

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) { return tensorType(value).getShape(); }

/// f64 f32 f16 bf16 i64 i32 i8 ui8 i1: those of Gpuc_Element, for types that no op of the dialect has
/// checked.
bool isElement(mlir::Type type);

/// Static, or with a leading `?`, which is the batch wherever it stands.
bool hasStaticOrBatchShape(mlir::Type type);

/// Elements of a tensor; the batch counts as one.
int64_t elementCount(mlir::Type tensor);

/// The first extent of a tensor; of a scalar 1.
int64_t rowCount(mlir::Type tensor);

/// Bytes of a tensor with static shape; i1 takes a byte.
int64_t sizeInBytes(mlir::Type tensor);

/// Bytes of one element; i1 takes one.
int64_t elementBytes(mlir::Type element);

/// Default costs: one operation for each element of the results; every operand and result touched once.
int64_t elementwiseFlops(mlir::Operation *op);
int64_t touchedBytes(mlir::Operation *op);

/// Under which a `#gpuc.partition` stands: see there.
inline constexpr llvm::StringLiteral kPartitionAttr = "gpuc.partition";

} // namespace gpuc::ir

#include "dialects/gpuc/GpucDialect.h.inc"
