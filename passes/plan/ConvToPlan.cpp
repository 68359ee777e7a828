//===- ConvToPlan.cpp - Convolutions as a library's command -------------------===//

#include "passes/plan/ConvToPlan.h"

#include "dialects/gpuc/Convolutions.h"
#include "dialects/gpuc/Tf32.h"
#include "passes/base/Locations.h"
#include "runtime/base/same_numbers.h"
#include "runtime/workspace/conv_cudnn_workspace.h"
#include "runtime/workspace/conv_workspace.h"

using namespace mlir;

namespace gpuc {

static_assert(haveSameNumbers<plan::ConvKind, ConvKind>(
    static_cast<plan::ConvKind>(plan::getMaxEnumValForConvKind()),
    {{plan::ConvKind::forward, ConvKind::forward},
     {plan::ConvKind::input_gradient, ConvKind::input_gradient},
     {plan::ConvKind::filter_gradient, ConvKind::filter_gradient}}));

static ConvAxis axisOf(const ir::Windows &windows, int64_t input, int64_t output) {
  return {.input = input,
          .output = output,
          .kernel = windows.size,
          .stride = windows.stride,
          .low = windows.low,
          .high = windows.high,
          .dilation = windows.dilation};
}

static ConvShape shapeOf(ConvKind kind, const ir::Convolution &convolution) {
  ArrayRef<int64_t> input = convolution.input.getShape(), result = convolution.result.getShape();
  ConvShape shape;
  shape.kind = kind;
  shape.type = plan::dataTypeOf(convolution.input.getElementType());
  shape.batch = input[0];
  shape.channels_last = convolution.channelsLast;
  shape.groups = convolution.groups;
  shape.in_channels = input[1];
  shape.out_channels = result[1];
  shape.height = axisOf(convolution.windows.rows, input[2], result[2]);
  shape.width = axisOf(convolution.windows.columns, input[3], result[3]);
  return shape;
}

/// Of conv2d or one of its gradients, with static shapes.
static ConvShape convShapeOf(Operation *op) {
  if (auto conv = dyn_cast<ir::Conv2dOp>(op))
    return shapeOf(ConvKind::forward, ir::convolutionOf(conv));
  if (auto conv = dyn_cast<ir::Conv2dInputGradientOp>(op))
    return shapeOf(ConvKind::input_gradient, ir::convolutionOf(conv));
  return shapeOf(ConvKind::filter_gradient, ir::convolutionOf(cast<ir::Conv2dFilterGradientOp>(op)));
}

/// What the target's convolution may use beside its operands, in bytes.
static int64_t workspaceBytes(plan::TargetAttr target, const ConvShape &shape, bool tf32) {
  return target.getKind() == plan::TargetKind::cuda ? cudnnWorkspaceBytes(shape, tf32)
                                                    : convWorkspaceBytes(shape);
}

LogicalResult convertConvolution(ProgramWriter &writer, const Product &product) {
  Operation *op = product.op;
  const ConvShape s = convShapeOf(op);
  const bool tf32 = ir::isTf32(op);
  if (s.channels_last && writer.target.getKind() != plan::TargetKind::cuda)
    return op->emitOpError("has its channels last, which no convolution of the host has: compile the model, "
                           "not a later stage of it, with --target=host");
  const std::string name = product.name.empty() ? nameInLayer(op->getLoc(), "conv") : product.name;
  Value workspace = writer.workspaceFor(name, workspaceBytes(writer.target, s, tf32), product.location);
  plan::ConvOp::create(writer.builder, product.location, static_cast<plan::ConvKind>(s.kind),
                       writer.buffers.lookup(op->getOperand(0)), writer.buffers.lookup(op->getOperand(1)),
                       writer.bufferFor(product.result, name), product.bias, workspace, product.mask,
                       getElementTypeOrSelf(product.result), s.batch,
                       {s.in_channels, s.height.input, s.width.input},
                       {s.out_channels, s.groupInputs(), s.height.kernel, s.width.kernel},
                       {s.out_channels, s.height.output, s.width.output}, {s.height.stride, s.width.stride},
                       {s.height.low, s.height.high, s.width.low, s.width.high},
                       {s.height.dilation, s.width.dilation}, s.groups, product.relu, tf32, s.channels_last);
  return success();
}

} // namespace gpuc
