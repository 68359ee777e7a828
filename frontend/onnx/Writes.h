//===- Writes.h - What is written by indices ----------------------------------===//
//
// gpuc.scatter_add adds; what stands in a place in the end, where several updates name it, is decided here:
// the last of them in row-major order, which PyTorch and ONNX leave open, and which both write on a CPU. Of
// the gradient each has all, as PyTorch gives it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/onnx/Tensor.h"

namespace gpuc::onnx {

/// x with `updates` at `indices` [n] of dimension 0, in the place of what is there. `areDistinct`: no place
/// is named twice, which takes less.
Tensor scatterInto(const Tensor &x, const Tensor &indices, const Tensor &updates, bool areDistinct);

/// x with single elements added, or in the place of what is there: `indices` and `updates` have the rank of
/// x, and name elements along `dim`.
Tensor scatterElements(const Tensor &x, const Tensor &indices, const Tensor &updates, int64_t dim, bool adds);

/// Whether it is known that no two tuples of indices, which lie behind one another, name one place of a
/// tensor of `shape`.
bool areDistinct(const Tensor &indices, const Shape &shape);
/// Whether that is known of indices, of an `extent`, along `dim`: of constants, or the order of a sort.
bool areDistinctAlong(const Tensor &indices, int64_t dim, int64_t extent);

} // namespace gpuc::onnx
