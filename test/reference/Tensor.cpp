//===- Tensor.cpp - Values of the reference interpreter ----------------------===//

#include "test/reference/Tensor.h"

#include "runtime/base/half.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace gpuc::reference {

Tensor::Tensor(RankedTensorType type, ArrayRef<double> values) : Tensor(type) {
  assert(values.size() == elements.size());
  for (auto [element, value] : llvm::zip_equal(elements, values)) {
    if (isFloat())
      element.real = value;
    else
      element.integer = wrapped(static_cast<int64_t>(value), type.getElementType());
  }
}

int64_t wrapped(int64_t value, Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  if (width == 64)
    return value;
  uint64_t low = static_cast<uint64_t>(value) & ((uint64_t(1) << width) - 1);
  bool isSigned = width > 1 && !element.isUnsignedInteger();
  if (isSigned && (low >> (width - 1)))
    low |= ~uint64_t(0) << width;
  return static_cast<int64_t>(low);
}

double halfToDouble(uint16_t bits) {
  double sign = bits & 0x8000 ? -1 : 1;
  int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0x1f)
    return fraction ? std::nan("") : sign * INFINITY;
  if (exponent == 0)
    return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

double rounded(double value, Type element) {
  auto single = static_cast<float>(value);
  if (element.isF64())
    return value;
  if (element.isF32())
    return single;
  if (element.isBF16())
    return bfloat16ToFloat(floatToBfloat16(single));
  return halfToDouble(floatToHalf(single));
}

Shape stridesOf(ArrayRef<int64_t> shape) {
  Shape strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  return strides;
}

void forEachIndex(ArrayRef<int64_t> shape, llvm::function_ref<void(ArrayRef<int64_t>)> body) {
  if (llvm::is_contained(shape, 0))
    return;
  Shape index(shape.size(), 0);
  while (true) {
    body(index);
    size_t dim = shape.size();
    while (dim > 0 && ++index[dim - 1] == shape[dim - 1])
      index[--dim] = 0;
    if (dim == 0)
      return;
  }
}

int64_t positionOf(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t position = 0;
  for (auto [coordinate, extent] : llvm::zip_equal(index, shape))
    position = position * extent + coordinate;
  return position;
}

} // namespace gpuc::reference
