//===- EmitShapes.cpp - Shapes of library calls in the plan file -----------===//

#include "passes/emit/EmitShapes.h"

namespace gpuc {

static std::unique_ptr<fb::ConvAxis> emitAxis(const ConvAxis &axis) {
  return std::make_unique<fb::ConvAxis>(axis.input, axis.output, axis.kernel, axis.stride, axis.low,
                                        axis.high, axis.dilation);
}

void emitShape(const ConvShape &shape, fb::ConvT &entry) {
  entry.kind = static_cast<fb::ConvKind>(shape.kind);
  entry.batch = shape.batch;
  entry.groups = shape.groups;
  entry.in_channels = shape.in_channels;
  entry.out_channels = shape.out_channels;
  entry.height = emitAxis(shape.height);
  entry.width = emitAxis(shape.width);
  entry.channels_last = shape.channels_last;
}

static std::unique_ptr<fb::AttentionLayout> emitLayout(const AttentionLayout &layout) {
  return std::make_unique<fb::AttentionLayout>(layout.batch, layout.head, layout.row);
}

void emitShape(const AttentionShape &shape, fb::AttentionT &entry) {
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

} // namespace gpuc
