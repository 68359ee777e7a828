//===- HostTensor.h - Arithmetic on what is known while importing -----------===//
#pragma once

#include "frontend/onnx/reader/Model.h"

namespace gpuc::onnx {

/// The elements as integers (i64 i32 i8 ui8 i1; floating point is cut).
std::vector<int64_t> integersOf(const HostTensor &tensor);
/// The elements as f64, exactly.
std::vector<double> numbersOf(const HostTensor &tensor);
/// What an f32 of the file was rounded from is a number like 0.9 or 1e-5, by which models of f64 compute: the
/// shortest decimal that gives this f32.
double decimalOf(float number);

/// A tensor of these elements, each wrapped around (integers) or rounded (floating point) to `type`.
HostTensorPtr fromIntegers(DataType type, std::vector<int64_t> shape, const std::vector<int64_t> &elements);
HostTensorPtr fromNumbers(DataType type, std::vector<int64_t> shape, const std::vector<double> &elements);

/// What the attribute holds, a number or a list of such as a tensor; null if it is of another kind.
HostTensorPtr tensorOf(const NodeAttribute &attribute);

/// Element i of the result is element sources[i] of `tensor`; -1 gives zero.
HostTensorPtr pick(const HostTensor &tensor, std::vector<int64_t> shape, const std::vector<int64_t> &sources);

/// The same elements under another shape and of the same number.
HostTensorPtr withShape(const HostTensorPtr &tensor, std::vector<int64_t> shape);

} // namespace gpuc::onnx
