//===- AttentionShapes.cpp - Attention as the runtime describes it ----------===//

#include "passes/plan/AttentionShapes.h"

using namespace mlir;

namespace gpuc {

//===----------------------------------------------------------------------===//
// Of commands
//===----------------------------------------------------------------------===//

/// The layouts in the order of the commands' strides.
static SmallVector<AttentionLayout *> layoutsOf(AttentionShape &shape) {
  SmallVector<AttentionLayout *> layouts{&shape.query, &shape.key, &shape.value, &shape.result};
  if (shape.kind == AttentionKind::gradient)
    layouts.append({&shape.cotangent, &shape.query_cotangent, &shape.key_cotangent, &shape.value_cotangent});
  return layouts;
}

template <typename Op> static AttentionShape describeCommand(Op op, AttentionKind kind) {
  AttentionShape shape;
  shape.kind = kind;
  shape.type = op.getElement().isF64() ? DataType::f64 : DataType::f32;
  shape.batch = op.getBatch();
  shape.heads = op.getHeads();
  shape.groups = op.getGroups();
  shape.queries = op.getQueries();
  shape.keys = op.getKeys();
  shape.width = op.getWidth();
  shape.value_width = op.getValueWidth();
  shape.scale = op.getScale().convertToDouble();
  shape.causal = op.getCausal();
  if (op.getDropout()) {
    shape.dropout = op.getDropout()->convertToDouble();
    shape.id = *op.getId();
  }
  if (op.getMask()) {
    int64_t elements = 1;
    const int64_t extents[] = {shape.batch, shape.heads, shape.queries, shape.keys};
    for (auto [extent, stride, slot] : llvm::zip(extents, *op.getMaskStrides(), shape.mask_strides)) {
      slot = stride;
      elements += (extent - 1) * stride;
    }
    // i1 takes a byte; the verifier has seen that it is one or the other.
    bool isFlags = plan::rangeOf(op.getMask()).size == elements;
    shape.mask = isFlags ? AttentionMask::flags : AttentionMask::addends;
  }
  for (auto [index, layout] : llvm::enumerate(layoutsOf(shape))) {
    ArrayRef<int64_t> strides = op.getStrides().slice(3 * index, 3);
    *layout = {strides[0], strides[1], strides[2]};
  }
  return shape;
}

AttentionShape attentionShapeOf(plan::AttentionOp attention) {
  return describeCommand(attention, AttentionKind::forward);
}

AttentionShape attentionShapeOf(plan::AttentionGradientOp gradient) {
  AttentionShape shape = describeCommand(gradient, AttentionKind::gradient);
  shape.mask_gradient = gradient.getMaskCotangent() != nullptr;
  return shape;
}

void createAttention(OpBuilder &builder, Location location, const AttentionShape &shape, Type element,
                     const AttentionBuffers &b) {
  AttentionShape copy = shape;
  SmallVector<int64_t> strides;
  for (AttentionLayout *layout : layoutsOf(copy))
    strides.append({layout->batch, layout->head, layout->row});
  UnitAttr causal = shape.causal ? builder.getUnitAttr() : UnitAttr();
  DenseI64ArrayAttr maskStrides = b.mask ? builder.getDenseI64ArrayAttr(shape.mask_strides) : nullptr;
  FloatAttr dropout = shape.dropout > 0 ? builder.getF64FloatAttr(shape.dropout) : FloatAttr();
  IntegerAttr id = shape.dropout > 0 ? builder.getI64IntegerAttr(shape.id) : IntegerAttr();
  auto number = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
  auto create = [&](auto op, auto... operands) {
    decltype(op)::create(builder, location, operands..., TypeAttr::get(element), number(shape.batch),
                         number(shape.heads), number(shape.groups), number(shape.queries), number(shape.keys),
                         number(shape.width), number(shape.value_width), builder.getF64FloatAttr(shape.scale),
                         causal, builder.getDenseI64ArrayAttr(strides), maskStrides, dropout, id);
  };
  if (shape.kind == AttentionKind::forward)
    create(plan::AttentionOp(), b.query, b.key, b.value, b.result, b.logSumExp, b.mask, b.seed, b.step);
  else
    create(plan::AttentionGradientOp(), b.query, b.key, b.value, b.result, b.logSumExp, b.mask, b.seed,
           b.step, b.cotangent, b.queryCotangent, b.keyCotangent, b.valueCotangent, b.maskCotangent,
           b.workspace);
}

} // namespace gpuc
