//===- ConvToPlan.cpp - Convolutions as a library's command -------------------===//

#include "passes/plan/ConvToPlan.h"

#include "dialects/gpuc/Tf32.h"
#include "passes/base/ConvShapes.h"
#include "passes/base/Locations.h"
#include "runtime/workspace/conv_cudnn_workspace.h"
#include "runtime/workspace/conv_tiles.h"

using namespace mlir;

namespace gpuc {

/// What the target's convolution may use beside its operands, in bytes.
static int64_t workspaceBytes(plan::TargetAttr target, const ConvShape &shape, bool tf32) {
  return target.getKind() == plan::TargetKind::cuda ? cudnnWorkspaceBytes(shape, tf32)
                                                    : convWorkspaceBytes(shape);
}

LogicalResult convertConvolution(ProgramWriter &writer, const Product &product) {
  Operation *op = product.op;
  const ConvShape s = convShapeOf(op);
  if (std::optional<MatmulShape> matmul = productOf(s);
      matmul && writer.target.getKind() == plan::TargetKind::host)
    return writeMatmul(writer, product, *matmul);
  const bool tf32 = ir::isTf32(op);
  if (s.channels_last && writer.target.getKind() != plan::TargetKind::cuda)
    return op->emitOpError("has its channels last, which no convolution of the host has: compile the model, "
                           "not a later stage of it, with --target=host");
  const std::string name = product.name.empty() ? nameInLayer(op->getLoc(), "conv") : product.name;
  Value workspace = writer.workspaceFor(name, workspaceBytes(writer.target, s, tf32), product.location);
  Value squares =
      product.squares ? squaresFor(writer, product.squares, convGradientTiles(s)->count(), name) : Value();
  plan::ConvOp::create(writer.builder, product.location, static_cast<plan::ConvKind>(s.kind),
                       writer.buffers.lookup(op->getOperand(0)), writer.buffers.lookup(op->getOperand(1)),
                       writer.bufferFor(product.result, name), product.bias, workspace, product.mask, squares,
                       /*update_inputs=*/ValueRange(), /*update_outputs=*/ValueRange(),
                       /*update=*/FlatSymbolRefAttr(), getElementTypeOrSelf(product.result), s.batch,
                       {s.in_channels, s.height.input, s.width.input},
                       {s.out_channels, s.groupInputs(), s.height.kernel, s.width.kernel},
                       {s.out_channels, s.height.output, s.width.output}, {s.height.stride, s.width.stride},
                       {s.height.low, s.height.high, s.width.low, s.width.high},
                       {s.height.dilation, s.width.dilation}, s.groups, product.relu, tf32, s.channels_last);
  if (squares)
    writer.addUp(squares, product.squares);
  return success();
}

} // namespace gpuc
