//===- Index.cpp - Where an op reads, as a function of where it writes ------===//

#include "passes/codegen/Index.h"

#include "dialects/gpuc/GpucOps.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {

Affine constantAffine(int64_t constant, size_t space) {
  Affine result;
  result.constant = constant;
  result.coefficients.assign(space, 0);
  return result;
}

Affine coordinate(size_t dimension, size_t space) {
  Affine result = constantAffine(0, space);
  result.coefficients[dimension] = 1;
  return result;
}

Affine scaled(Affine a, int64_t scale, int64_t constant) {
  a.constant = a.constant * scale + constant;
  for (int64_t &coefficient : a.coefficients)
    coefficient *= scale;
  a.dynamicScale *= scale;
  return a;
}

Affine sum(Affine a, const Affine &b, int64_t scale) {
  assert(!(a.isDynamic && b.isDynamic) && "one dynamic part at most");
  Affine addend = scaled(b, scale, 0);
  addend.constant += a.constant;
  for (auto [total, coefficient] : llvm::zip_equal(addend.coefficients, a.coefficients))
    total += coefficient;
  if (a.isDynamic) {
    addend.dynamic = a.dynamic;
    addend.dynamicScale = a.dynamicScale;
    addend.dynamicLevel = a.dynamicLevel;
    addend.isDynamic = true;
  }
  return addend;
}

SmallVector<int64_t> rowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Affine linearAddress(const Index &index, ArrayRef<int64_t> shape, size_t space) {
  Affine address = constantAffine(0, space);
  for (auto [entry, stride] : llvm::zip_equal(index, rowMajorStrides(shape))) {
    address.constant += entry.constant * stride;
    for (auto [total, coefficient] : llvm::zip_equal(address.coefficients, entry.coefficients))
      total += coefficient * stride;
  }
  return address;
}

ArrayRef<int64_t> shapeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getShape(); }

bool isMovement(Operation *op) { return isa<BroadcastOp, TransposeOp, SliceOp, ReverseOp>(op); }

bool isPooling(Operation *op) {
  return isa<MaxPool2dOp, MaxPool2dGradientOp, MaxPool2dGatherOp, AvgPool2dOp, AvgPool2dGradientOp>(op);
}

Index movedIndex(Operation *op, const Index &index) {
  Index result;
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    for (int64_t dim : broadcast.getDims())
      result.push_back(index[dim]);
  } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
    result.resize(index.size());
    for (auto [position, dim] : llvm::enumerate(transpose.getPermutation()))
      result[dim] = index[position];
  } else if (auto slice = dyn_cast<SliceOp>(op)) {
    for (auto [entry, start, stride] : llvm::zip_equal(index, slice.getStarts(), slice.getStrides()))
      result.push_back(scaled(entry, stride, start));
  } else {
    auto reverse = cast<ReverseOp>(op);
    result = index;
    for (int64_t dim : reverse.getDims())
      result[dim] = scaled(index[dim], -1, shapeOf(reverse.getResult())[dim] - 1);
  }
  return result;
}

} // namespace gpuc::codegen
