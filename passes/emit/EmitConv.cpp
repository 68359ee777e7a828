//===- EmitConv.cpp - Convolutions in the plan file -------------------------===//

#include "passes/emit/EmitLibraryCommand.h"

namespace gpuc {

/// Down (0) or across (1) the images.
static std::unique_ptr<fb::ConvAxis> axisOf(plan::ConvOp conv, size_t along) {
  llvm::ArrayRef<int64_t> padding = conv.getPadding().drop_front(2 * along);
  return std::make_unique<fb::ConvAxis>(conv.getInput()[1 + along], conv.getOutput()[1 + along],
                                        conv.getFilter()[2 + along], conv.getStrides()[along], padding[0],
                                        padding[1], conv.getDilation()[along]);
}

fb::ConvT emit(plan::ConvOp conv, EmitOperand operand) {
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
  entry.relu = conv.getRelu();
  return entry;
}

} // namespace gpuc
