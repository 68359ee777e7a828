//===- AttentionShapes.cpp - Attention as the runtime describes it ----------===//

#include "passes/plan/AttentionShapes.h"

using namespace mlir;

namespace gpuc {

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

//===----------------------------------------------------------------------===//
// Results side by side
//===----------------------------------------------------------------------===//

namespace {

/// Heads [batch, heads, rows, width] of elements.
struct Heads {
  Value value;
  AttentionLayout layout;
  int64_t batch, heads, rows, width;

  int64_t elements() const { return batch * heads * rows * width; }
  int64_t span() const {
    return (batch - 1) * layout.batch + (heads - 1) * layout.head + (rows - 1) * layout.row + width;
  }
};

} // namespace

static RowPieces piecesOf(const Heads &h, int64_t elementBytes) {
  RowPieces pieces{h.value, h.batch * h.rows, (h.rows > 1 ? h.layout.row : h.layout.batch) * elementBytes, 0};
  bool headsAdjoin = h.heads == 1 || h.layout.head == h.width;
  bool batchAdjoins = h.batch == 1 || h.rows == 1 || h.layout.batch == h.rows * h.layout.row;
  if (headsAdjoin && batchAdjoins)
    pieces.pieceBytes = h.heads * h.width * elementBytes;
  return pieces;
}

SmallVector<RowPieces> rowPiecesOf(Operation *command) {
  SmallVector<Heads> written;
  Type element;
  if (auto attention = dyn_cast<plan::AttentionOp>(command)) {
    AttentionShape s = attentionShapeOf(attention);
    written.push_back({attention.getResult(), s.result, s.batch, s.heads, s.queries, s.value_width});
    element = attention.getElement();
  } else if (auto gradient = dyn_cast<plan::AttentionGradientOp>(command)) {
    AttentionShape s = attentionShapeOf(gradient);
    written.push_back(
        {gradient.getQueryCotangent(), s.query_cotangent, s.batch, s.heads, s.queries, s.width});
    written.push_back({gradient.getKeyCotangent(), s.key_cotangent, s.batch, s.groups, s.keys, s.width});
    written.push_back(
        {gradient.getValueCotangent(), s.value_cotangent, s.batch, s.groups, s.keys, s.value_width});
    element = gradient.getElement();
  }
  SmallVector<RowPieces> pieces;
  for (const Heads &heads : written)
    if (heads.span() != heads.elements())
      pieces.push_back(piecesOf(heads, ir::elementBytes(element)));
  return pieces;
}

} // namespace gpuc
