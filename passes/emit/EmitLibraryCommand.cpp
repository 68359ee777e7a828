//===- EmitLibraryCommand.cpp - Commands of libraries in the plan file ------===//

#include "passes/emit/EmitParts.h"

#include "passes/plan/AttentionShapes.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace gpuc {

fb::DataType dataTypeOf(Type element) { return static_cast<fb::DataType>(plan::dataTypeOf(element)); }

static fb::MatmulT emit(plan::MatmulOp matmul, EmitOperand operand) {
  fb::MatmulT entry;
  entry.type = dataTypeOf(matmul.getElement());
  entry.a = operand(matmul.getLhs());
  entry.b = operand(matmul.getRhs());
  entry.c = operand(matmul.getResult());
  entry.bias = operand(matmul.getBias());
  entry.mask = operand(matmul.getMask());
  entry.squares = operand(matmul.getSquares());
  entry.relu = matmul.getRelu();
  entry.accumulate = matmul.getAccumulate();
  entry.workspace = operand(matmul.getWorkspace());
  entry.batch = matmul.getBatch();
  entry.m = matmul.getM();
  entry.n = matmul.getN();
  entry.k = matmul.getK();
  entry.transpose_a = matmul.getTransposeLhs();
  entry.transpose_b = matmul.getTransposeRhs();
  entry.batch_stride_a = entry.batch > 1 ? entry.m * entry.k : 0;
  entry.batch_stride_b = entry.batch > 1 ? entry.k * entry.n : 0;
  entry.tf32 = matmul.getTf32();
  return entry;
}

/// Down (0) or across (1) the images.
static std::unique_ptr<fb::ConvAxis> axisOf(plan::ConvOp conv, size_t along) {
  ArrayRef<int64_t> padding = conv.getPadding().drop_front(2 * along);
  return std::make_unique<fb::ConvAxis>(conv.getInput()[1 + along], conv.getOutput()[1 + along],
                                        conv.getFilter()[2 + along], conv.getStrides()[along], padding[0],
                                        padding[1], conv.getDilation()[along]);
}

static fb::ConvT emit(plan::ConvOp conv, EmitOperand operand) {
  fb::ConvT entry;
  entry.kind = static_cast<fb::ConvKind>(conv.getKind());
  entry.type = dataTypeOf(conv.getElement());
  entry.batch = conv.getBatch();
  entry.groups = conv.getGroups();
  entry.in_channels = conv.getInput()[0];
  entry.out_channels = conv.getOutput()[0];
  entry.height = axisOf(conv, 0);
  entry.width = axisOf(conv, 1);
  entry.channels_last = conv.getChannelsLast();
  entry.a = operand(conv.getLhs());
  entry.b = operand(conv.getRhs());
  entry.c = operand(conv.getResult());
  entry.workspace = operand(conv.getWorkspace());
  entry.tf32 = conv.getTf32();
  entry.bias = operand(conv.getBias());
  entry.mask = operand(conv.getMask());
  entry.squares = operand(conv.getSquares());
  entry.relu = conv.getRelu();
  return entry;
}

static fb::SumT emit(plan::SumOp sum, EmitOperand operand) {
  fb::SumT entry;
  entry.type = dataTypeOf(sum.getElement());
  entry.parts = operand(sum.getParts());
  entry.result = operand(sum.getResult());
  return entry;
}

static fb::AllReduceT emit(plan::AllReduceOp reduce, EmitOperand operand) {
  fb::AllReduceT entry;
  entry.type = dataTypeOf(reduce.getElement());
  entry.part = operand(reduce.getPart());
  entry.result = operand(reduce.getResult());
  return entry;
}

template <typename Entry, typename Op> static Entry emitShares(Op op, EmitOperand operand) {
  Entry entry;
  entry.type = dataTypeOf(op.getElement());
  entry.owners = static_cast<uint32_t>(op.getOwners().value_or(0));
  for (Value whole : op.getWholes())
    entry.wholes.push_back(operand(whole));
  for (Value share : op.getShares())
    entry.shares.push_back(operand(share));
  return entry;
}

static fb::ReduceScatterT emit(plan::ReduceScatterOp scatter, EmitOperand operand) {
  return emitShares<fb::ReduceScatterT>(scatter, operand);
}

static fb::AllGatherT emit(plan::AllGatherOp gather, EmitOperand operand) {
  return emitShares<fb::AllGatherT>(gather, operand);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

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

static fb::AttentionT emit(plan::AttentionOp attention, EmitOperand operand) {
  return emitCommon(attention, operand);
}

static fb::AttentionT emit(plan::AttentionGradientOp gradient, EmitOperand operand) {
  fb::AttentionT entry = emitCommon(gradient, operand);
  entry.cotangent = operand(gradient.getCotangent());
  entry.query_cotangent = operand(gradient.getQueryCotangent());
  entry.key_cotangent = operand(gradient.getKeyCotangent());
  entry.value_cotangent = operand(gradient.getValueCotangent());
  entry.mask_cotangent = operand(gradient.getMaskCotangent());
  entry.workspace = operand(gradient.getWorkspace());
  return entry;
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

fb::WorkUnion emitLibraryCommand(Operation *command, EmitOperand operand) {
  fb::WorkUnion work;
  TypeSwitch<Operation *>(command)
      .Case<plan::MatmulOp, plan::ConvOp, plan::AttentionOp, plan::AttentionGradientOp, plan::SumOp,
            plan::AllReduceOp, plan::ReduceScatterOp, plan::AllGatherOp>(
          [&](auto op) { work.Set(emit(op, operand)); });
  return work;
}

} // namespace gpuc
