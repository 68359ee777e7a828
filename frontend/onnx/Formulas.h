//===- Formulas.h - What importers write in ops of gpuc ----------------------===//
//
// Functions that the dialect has not, by those that it has. Here stands what both ONNX and PyTorch have;
// formulas of one of them stand in the file of its ops.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/onnx/Tensor.h"

namespace gpuc::onnx {

//===----------------------------------------------------------------------===//
// Functions of one number, without loss near 0
//===----------------------------------------------------------------------===//

Tensor asin(const Tensor &x);
Tensor acos(const Tensor &x);
Tensor sinh(const Tensor &x);
Tensor cosh(const Tensor &x);
Tensor asinh(const Tensor &x);
Tensor acosh(const Tensor &x);
Tensor atanh(const Tensor &x);

//===----------------------------------------------------------------------===//
// Orders and running products
//===----------------------------------------------------------------------===//

/// Where the largest element along `dim`, or the least, stands: the first of several.
Tensor indexOfExtreme(const Tensor &x, int64_t dim, bool largest);

/// The k largest elements, largest first, or the k least, and where they stand.
std::vector<Tensor> topK(const Tensor &x, int64_t dim, int64_t k, bool largest);

/// y_i is the product of all up to x_i; of those before it if `exclusive`; from the end if `backwards`.
Tensor runningProduct(const Tensor &x, int64_t dim, bool exclusive = false, bool backwards = false);

//===----------------------------------------------------------------------===//
// By index: gpuc gathers and scatters whole slices along one dimension
//===----------------------------------------------------------------------===//

Tensor gather(const Tensor &x, const Tensor &indices, int64_t dim);

/// Indices that are negative count from the end.
Tensor wrap(const Tensor &indices, int64_t extent);

/// The linear index of the element that has `indices` in dimension `dim` and stands, in the others, where its
/// index does.
Tensor linearize(const Tensor &x, const Tensor &indices, int64_t dim);

/// x with `updates` added at `indices` of dimension 0. What is put in the place of what is there: Writes.h.
Tensor scatterAdd(const Tensor &x, const Tensor &indices, const Tensor &updates);

} // namespace gpuc::onnx
