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

} // namespace gpuc
