//===- RowPlaces.h - Along which dimension the batch's rows lie ---------------===//
#pragma once

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseMap.h"

#include <cstdint>

namespace gpuc::torch {

/// A dimension whose index says which row an element is of: each row is `inner` indices after one another.
struct RowPlace {
  int64_t dim = 0, inner = 1;
};

using RowPlaces = llvm::DenseMap<mlir::Value, RowPlace>;

/// Follows rows from where they are known through the block, as far as an op's meaning says where they go.
void followRows(mlir::Block &block, int64_t batch, RowPlaces &places);

/// And back: what does not hang on rows, but has an element for each of them where it meets what does, as
/// noise that is added to them. What is repeated over the rows does not.
void followRowsBack(mlir::Block &block, int64_t batch, RowPlaces &places);

} // namespace gpuc::torch
