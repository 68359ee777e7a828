//===- LastSums.h - Which sum over ranks, or product, an op waits for at last -===//
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace gpuc {

/// A kernel begins when all is there that it reads: of two ops that wait for different sums over ranks, one
/// would be held up by the other's. Sums for which other sums wait, as those of a synchronised norm, are not
/// looked at: what follows them has to wait in any case.
class LastSums {
public:
  explicit LastSums(mlir::Block &block);

  /// The place in the block of the last such sum that the op depends on, from 1; 0 if there is none.
  unsigned of(mlir::Operation *op) const { return last_.lookup(op); }

private:
  llvm::DenseMap<mlir::Operation *, unsigned> last_; ///< Where it is not 0.
};

/// The same of products, and of loops, which may hold some: the number by which gradients are divided is
/// known before the forward pass, their norm behind the last of them.
class LastProducts {
public:
  LastProducts() = default;
  explicit LastProducts(mlir::Block &block);

  unsigned of(mlir::Operation *op) const { return last_.lookup(op); }

private:
  llvm::DenseMap<mlir::Operation *, unsigned> last_; ///< Where it is not 0.
};

} // namespace gpuc
