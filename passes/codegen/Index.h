//===- Index.h - Where an op reads, as a function of where it writes --------===//
//
// A kernel's iteration space has dimensions. A position in a tensor is, for each of the tensor's dimensions,
// an affine function of the coordinates in that space. Ops that only move elements map a position in their
// result to one in their operand, so that any chain of them collapses to one affine address at the leaf.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"

namespace gpuc::codegen {

/// constant + Σ coefficients[d] · coordinate[d] + dynamicScale · dynamic.
struct Affine {
  int64_t constant = 0;
  llvm::SmallVector<int64_t, 6> coefficients; ///< One for each dimension of the iteration space.

  /// What the kernel computes: an i64, or a vector of them with one for each lane. Null where there is none,
  /// and in analyses, which know only that `isDynamic`.
  mlir::Value dynamic;
  int64_t dynamicScale = 0;
  int dynamicLevel = 0; ///< The loop level at which `dynamic` is known.
  bool isDynamic = false;

  bool operator==(const Affine &) const = default;
};

/// Numbers from `low` on, below `high`.
struct Range {
  int64_t low = 0, high = 0;
};

/// A position in a tensor, one entry for each of its dimensions.
using Index = llvm::SmallVector<Affine, 4>;

Affine constantAffine(int64_t constant, size_t space);
/// coordinate[dimension].
Affine coordinate(size_t dimension, size_t space);
/// scale · a + constant.
Affine scaled(Affine a, int64_t scale, int64_t constant);
/// a + scale · b, where at most one of them is dynamic.
Affine sum(Affine a, const Affine &b, int64_t scale);

/// Row-major: the product of the extents further in; 1 for the last.
llvm::SmallVector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> shape);

/// The static part of a position's address, in elements. What is dynamic is left to the emitter.
Affine linearAddress(const Index &index, llvm::ArrayRef<int64_t> shape, size_t space);

/// Shape of a ranked tensor value.
llvm::ArrayRef<int64_t> shapeOf(mlir::Value tensor);

/// True of ops that move elements by an affine map: broadcast, transpose, slice, reverse.
bool isMovement(mlir::Operation *op);

/// True of max_pool2d, avg_pool2d, their gradients and max_pool2d_gather.
bool isPooling(mlir::Operation *op);

/// Where a movement reads when its result is wanted at `index`.
Index movedIndex(mlir::Operation *op, const Index &index);

} // namespace gpuc::codegen
