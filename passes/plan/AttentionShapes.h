//===- AttentionShapes.h - Attention as the runtime describes it ------------===//
#pragma once

#include "dialects/plan/PlanOps.h"
#include "runtime/workspace/attention_shape.h"

namespace gpuc {

AttentionShape attentionShapeOf(plan::AttentionOp attention);
AttentionShape attentionShapeOf(plan::AttentionGradientOp gradient);

/// Buffers by role; those that the command has not are null.
struct AttentionBuffers {
  mlir::Value query, key, value, mask, seed, step, result, logSumExp;
  mlir::Value cotangent, queryCotangent, keyCotangent, valueCotangent, maskCotangent, workspace;
};

/// The command for `shape`, between these buffers.
void createAttention(mlir::OpBuilder &builder, mlir::Location location, const AttentionShape &shape,
                     mlir::Type element, const AttentionBuffers &buffers);

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
