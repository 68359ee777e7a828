//===- TypeChecks.h - What verifiers and folders of several ops share -------===//
//
// Internal to the dialect. Each message names the operand, both types, and the constraint's label in the ODS.
//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc::ir {

using Shape = llvm::SmallVector<int64_t>;

/// The operand's type with another shape.
inline mlir::RankedTensorType withShape(mlir::Value value, llvm::ArrayRef<int64_t> shape) {
  return mlir::RankedTensorType::get(shape, tensorType(value).getElementType());
}

/// An error about an op whose types are being inferred, perhaps before it exists.
template <typename Op, typename... Args>
mlir::LogicalResult emitTypeError(std::optional<mlir::Location> location, Args &&...args) {
  return mlir::emitOptionalError(location, "'", Op::getOperationName(), "' op ", std::forward<Args>(args)...);
}

/// In its generic text an op with optional operands says how many there are of each: of those that it cannot
/// do without, which `needed` numbers, there is one. To be asked before any of them is.
template <typename Op, typename Adaptor>
mlir::LogicalResult checkNeeded(std::optional<mlir::Location> location, Adaptor op,
                                std::initializer_list<unsigned> needed) {
  for (unsigned number : needed)
    if (auto found = op.getODSOperands(number); found.size() != 1)
      return emitTypeError<Op>(location, "requires one of operand ", number, ", and operandSegmentSizes say ",
                               found.size());
  return mlir::success();
}

/// The label that constraint `number` of an op has in its description: "layer_norm_C1".
inline std::string labelOf(llvm::StringRef op, int number) {
  return (op.split('.').second + "_C" + llvm::Twine(number)).str();
}

/// The extent as types are written: a number, or `?` for the batch.
std::string extentText(int64_t extent);

/// `label` allows `dim` only in [0, rank of the operand).
mlir::LogicalResult checkDim(std::optional<mlir::Location> location, llvm::StringRef op,
                             llvm::StringRef label, int64_t dim, mlir::Type operand);

/// `label` wants `dims` strictly increasing and within the rank of the type.
mlir::LogicalResult checkDims(std::optional<mlir::Location> location, llvm::StringRef op,
                              llvm::StringRef label, llvm::ArrayRef<int64_t> dims, mlir::Type type);

/// `label` wants the named tensor to be a scalar.
mlir::LogicalResult checkScalar(mlir::Operation *op, llvm::StringRef label, llvm::StringRef name,
                                mlir::Value value);

/// `label` wants the named tensor to be of the given type.
mlir::LogicalResult checkType(mlir::Operation *op, llvm::StringRef label, llvm::StringRef name,
                              mlir::Type found, mlir::Type expected);

/// `label` wants the number to lie in [0, 1], or not to be negative; NaN does neither.
mlir::LogicalResult checkFraction(mlir::Operation *op, llvm::StringRef label, llvm::StringRef name,
                                  const llvm::APFloat &number);
mlir::LogicalResult checkNotNegative(mlir::Operation *op, llvm::StringRef label, llvm::StringRef name,
                                     const llvm::APFloat &number);

/// How many elements of `operand` go into one of a reduction over `dims`; an error where the batch is not yet
/// bound.
mlir::FailureOr<int64_t> reducedCount(mlir::Operation *op, mlir::Value operand, llvm::ArrayRef<int64_t> dims);

/// The one number of a constant operand as FloatAttr or IntegerAttr, or null.
mlir::TypedAttr splatOf(mlir::Attribute operand);

/// Those of an op with one result.
inline mlir::FailureOr<Types> oneType(mlir::FailureOr<mlir::RankedTensorType> type) {
  return mlir::failed(type) ? mlir::FailureOr<Types>(mlir::failure()) : Types{*type};
}

/// The type of gather(operand, indices), or a message.
mlir::FailureOr<mlir::RankedTensorType> inferGatherType(std::optional<mlir::Location> location,
                                                        llvm::StringRef op, mlir::Value operand,
                                                        mlir::Value indices, int64_t dim);

} // namespace gpuc::ir
