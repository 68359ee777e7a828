//===- EmitAttention.cpp - Attention in the plan file -----------------------===//

#include "passes/emit/EmitLibraryCommand.h"
#include "passes/plan/AttentionShapes.h"

namespace gpuc {

static std::unique_ptr<fb::AttentionLayout> emitLayout(const AttentionLayout &layout) {
  return std::make_unique<fb::AttentionLayout>(layout.batch, layout.head, layout.row);
}

static void emitShape(const AttentionShape &shape, fb::AttentionT &entry) {
  entry.kind = static_cast<fb::AttentionKind>(shape.kind);
  entry.type = static_cast<fb::DataType>(shape.type);
  entry.batch = shape.batch;
  entry.heads = shape.heads;
  entry.groups = shape.groups;
  entry.queries = shape.queries;
  entry.keys = shape.keys;
  entry.width = shape.width;
  entry.value_width = shape.value_width;
  entry.scale = shape.scale;
  entry.causal = shape.causal;
  entry.dropout = shape.dropout;
  entry.id = shape.id;
  entry.mask_kind = static_cast<fb::AttentionMask>(shape.mask);
  const int64_t *along = shape.mask_strides;
  if (shape.mask != AttentionMask::none)
    entry.mask_strides = std::make_unique<fb::MaskStrides>(along[0], along[1], along[2], along[3]);
  entry.query_layout = emitLayout(shape.query);
  entry.key_layout = emitLayout(shape.key);
  entry.value_layout = emitLayout(shape.value);
  entry.result_layout = emitLayout(shape.result);
  if (shape.kind == AttentionKind::forward)
    return;
  entry.cotangent_layout = emitLayout(shape.cotangent);
  entry.query_cotangent_layout = emitLayout(shape.query_cotangent);
  entry.key_cotangent_layout = emitLayout(shape.key_cotangent);
  entry.value_cotangent_layout = emitLayout(shape.value_cotangent);
}

/// What attention and its gradient both have.
template <typename Op> static fb::AttentionT emitCommon(Op op, EmitOperand operand) {
  fb::AttentionT entry;
  emitShape(attentionShapeOf(op), entry);
  entry.query = operand(op.getQuery());
  entry.key = operand(op.getKey());
  entry.value = operand(op.getValue());
  entry.result = operand(op.getResult());
  entry.log_sum_exp = operand(op.getLogSumExp());
  entry.mask = operand(op.getMask());
  entry.seed = operand(op.getSeed());
  entry.step = operand(op.getStep());
  return entry;
}

fb::AttentionT emit(plan::AttentionOp attention, EmitOperand operand) {
  return emitCommon(attention, operand);
}

fb::AttentionT emit(plan::AttentionGradientOp gradient, EmitOperand operand) {
  fb::AttentionT entry = emitCommon(gradient, operand);
  entry.cotangent = operand(gradient.getCotangent());
  entry.query_cotangent = operand(gradient.getQueryCotangent());
  entry.key_cotangent = operand(gradient.getKeyCotangent());
  entry.value_cotangent = operand(gradient.getValueCotangent());
  entry.mask_cotangent = operand(gradient.getMaskCotangent());
  entry.workspace = operand(gradient.getWorkspace());
  return entry;
}

} // namespace gpuc
