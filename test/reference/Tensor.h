//===- Tensor.h - Values of the reference interpreter ------------------------===//
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace gpuc::reference {

using Shape = llvm::SmallVector<int64_t>;

/// One number: `real` if the tensor's elements are floating point, else `integer`, which is the value (ui8: 0
/// to 255, other integers signed, i1: 0 or 1).
struct Element {
  double real = 0;
  int64_t integer = 0;
  double terms = 0; ///< How large what was added up to it was: RunningError.h. Only where that is asked for.
};

/// A dense row-major tensor. What only moves elements need not know of what type they are.
struct Tensor {
  mlir::RankedTensorType type;
  std::vector<Element> elements;

  Tensor() = default;
  /// Zeros.
  explicit Tensor(mlir::RankedTensorType type) : type(type), elements(type.getNumElements()) {}
  /// `values` as elements of the type, row-major.
  Tensor(mlir::RankedTensorType type, llvm::ArrayRef<double> values);

  llvm::ArrayRef<int64_t> shape() const { return type.getShape(); }
  int64_t size() const { return static_cast<int64_t>(elements.size()); }
  bool isFloat() const { return llvm::isa<mlir::FloatType>(type.getElementType()); }
  /// Element `index` as a number.
  double at(int64_t index) const {
    return isFloat() ? elements[index].real : double(elements[index].integer);
  }
};

inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

/// The low bits of `value` that an integer of the type has, as a number.
int64_t wrapped(int64_t value, mlir::Type element);

/// `value` rounded to nearest, ties to even, in the floating-point type. f16 and bf16 are rounded by way of
/// f32.
double rounded(double value, mlir::Type element);

/// The f16 of these bits (IEEE 754 binary16).
double halfToDouble(uint16_t bits);

/// Row-major: the product of the extents further in.
Shape stridesOf(llvm::ArrayRef<int64_t> shape);

/// Calls `body` with every index of the shape in row-major order.
void forEachIndex(llvm::ArrayRef<int64_t> shape, llvm::function_ref<void(llvm::ArrayRef<int64_t>)> body);

/// Row-major position of an index.
int64_t positionOf(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> shape);

} // namespace gpuc::reference
