//===- AttentionToPlan.cpp - Attention as a library's command -----------------===//
//
// What attention reads and writes lies where a projection left it, or is to find it: a view from the first
// element of the heads to the last, and how they lie in there.
//
//===----------------------------------------------------------------------===//

#include "passes/base/AttentionViews.h"
#include "passes/base/Locations.h"
#include "passes/plan/AttentionShapes.h"
#include "passes/plan/ProgramWriter.h"

using namespace mlir;

namespace gpuc {
namespace {

class Conversion {
public:
  explicit Conversion(ProgramWriter &writer) : writer_(writer) {}

  void convert(ir::AttentionOp attention, const std::string &name) {
    AttentionShape shape = attentionShapeOf(attention);
    AttentionBuffers b = readOperands(attention, shape);
    b.result = writeHeads(attention.getResult(), name, shape.result);
    b.logSumExp = writer_.bufferFor(attention.getLogSumExp(), name + ".log_sum_exp");
    createAttention(writer_.builder, attention.getLoc(), shape, getElementTypeOrSelf(attention.getQuery()),
                    b);
  }

  void convert(ir::AttentionGradientOp gradient, const std::string &name) {
    AttentionShape shape = attentionShapeOf(gradient);
    AttentionBuffers b = readOperands(gradient, shape);
    b.result = readHeads(gradient.getResult(), shape.result);
    b.logSumExp = writer_.buffers.lookup(gradient.getLogSumExp());
    b.cotangent = readHeads(gradient.getCotangent(), shape.cotangent);
    b.queryCotangent = writeHeads(gradient.getQueryCotangent(), name + ".query", shape.query_cotangent);
    b.keyCotangent = writeHeads(gradient.getKeyCotangent(), name + ".key", shape.key_cotangent);
    b.valueCotangent = writeHeads(gradient.getValueCotangent(), name + ".value", shape.value_cotangent);
    if (shape.mask_gradient)
      b.maskCotangent = writer_.bufferFor(gradient.getMaskCotangent(), name + ".mask");
    b.workspace = writer_.workspaceFor(name, attentionWorkspaceBytes(shape), gradient.getLoc());
    createAttention(writer_.builder, gradient.getLoc(), shape, getElementTypeOrSelf(gradient.getQuery()), b);
  }

private:
  /// What attention and its gradient both read.
  template <typename Op> AttentionBuffers readOperands(Op op, AttentionShape &shape) {
    AttentionBuffers b;
    b.query = readHeads(op.getQuery(), shape.query);
    b.key = readHeads(op.getKey(), shape.key);
    b.value = readHeads(op.getValue(), shape.value);
    if (op.getMask())
      b.mask = writer_.buffers.lookup(op.getMask());
    if (dropsByCounters(op)) {
      b.seed = writer_.useOf("seed", op.getLoc());
      b.step = writer_.useOf("step", op.getLoc());
    }
    return b;
  }

  Value readHeads(Value value, AttentionLayout &layout) {
    StridedView view = viewOf(value);
    return rangeOfHeads(value, view, writer_.buffers.lookup(view.base), layout);
  }

  Value writeHeads(Value value, StringRef name, AttentionLayout &layout) {
    StridedView view = viewOf(value);
    bool isJoined = view.base.getDefiningOp<ir::ConcatOp>() && writer_.buffers.contains(view.base);
    return rangeOfHeads(value, view,
                        isJoined ? writer_.buffers.lookup(view.base) : writer_.bufferFor(view.base, name),
                        layout);
  }

  /// The bytes of `buffer` from the first element of the heads to the last, and how they lie in there.
  Value rangeOfHeads(Value value, const StridedView &view, Value buffer, AttentionLayout &layout) {
    auto type = cast<RankedTensorType>(value.getType());
    ArrayRef<int64_t> shape = type.getShape();
    layout = {view.strides[0], view.strides[1], std::max(view.strides[2], shape[3])}; // one row may have any
    int64_t elements = shape[3];
    for (auto [extent, stride] : llvm::zip(shape.take_front(3), view.strides))
      elements += (extent - 1) * stride;
    if (elements == ir::elementCount(view.base.getType()))
      return buffer;
    OpBuilder head = writer_.declarations();
    return plan::ViewOp::create(
        head, value.getLoc(), buffer.getType(), buffer, view.offset * ir::elementBytes(type.getElementType()),
        RankedTensorType::get({elements}, type.getElementType()), ArrayRef<int64_t>());
  }

  ProgramWriter &writer_;
};

} // namespace

LogicalResult convertAttention(ProgramWriter &writer, Operation *op) {
  if (writer.target.getKind() == plan::TargetKind::cuda)
    return op->emitOpError(
        "was kept whole for the host, and cuda has no kernel for it: compile the model, not "
        "a later stage of it, with --target=cuda");
  const std::string name = nameInLayer(op->getLoc(), "attention");
  if (auto attention = dyn_cast<ir::AttentionOp>(op))
    Conversion(writer).convert(attention, name);
  else
    Conversion(writer).convert(cast<ir::AttentionGradientOp>(op), name);
  return success();
}

} // namespace gpuc
