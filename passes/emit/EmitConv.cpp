//===- EmitConv.cpp - Convolutions in the plan file -------------------------===//

#include "passes/emit/EmitLibraryCommand.h"
#include "passes/plan/ConvToPlan.h"

namespace gpuc {

static std::unique_ptr<fb::ConvAxis> emitAxis(const ConvAxis &axis) {
  return std::make_unique<fb::ConvAxis>(axis.input, axis.output, axis.kernel, axis.stride, axis.low,
                                        axis.high, axis.dilation);
}

fb::ConvT emit(plan::ConvOp conv, EmitOperand operand) {
  const ConvShape shape = convShapeOf(conv);
  fb::ConvT entry;
  entry.kind = static_cast<fb::ConvKind>(shape.kind);
  entry.type = dataTypeOf(conv.getElement());
  entry.batch = shape.batch;
  entry.groups = shape.groups;
  entry.in_channels = shape.in_channels;
  entry.out_channels = shape.out_channels;
  entry.height = emitAxis(shape.height);
  entry.width = emitAxis(shape.width);
  entry.channels_last = shape.channels_last;
  entry.a = operand(conv.getLhs());
  entry.b = operand(conv.getRhs());
  entry.c = operand(conv.getResult());
  entry.workspace = operand(conv.getWorkspace());
  entry.tf32 = conv.getTf32();
  entry.bias = operand(conv.getBias());
  entry.mask = operand(conv.getMask());
  entry.relu = conv.getRelu();
  return entry;
}

} // namespace gpuc
