//===- AttentionWrites.h - Results of attention that lie side by side -------===//
#pragma once

#include "dialects/plan/PlanOps.h"

namespace gpuc {

/// Heads that attention writes into rows of which other operands of the command write the rest, as the
/// cotangents of queries, keys and values that one projection made.
struct RowPieces {
  mlir::Value value;  ///< The command's operand.
  int64_t rows;       ///< How many there are.
  int64_t rowBytes;   ///< From one to the next.
  int64_t pieceBytes; ///< Of each row, written from the operand's first byte on; 0 if it is no one piece.
};

/// The operands that the command writes with gaps; of most commands none.
llvm::SmallVector<RowPieces> rowPiecesOf(mlir::Operation *command);

} // namespace gpuc
