//===- ConvShapes.cpp - Convolutions as the runtime describes them -----------===//

#include "passes/base/ConvShapes.h"

#include "dialects/gpuc/Convolutions.h"
#include "runtime/base/same_numbers.h"

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

ConvShape convShapeOf(Operation *op) {
  if (auto conv = dyn_cast<ir::Conv2dOp>(op))
    return shapeOf(ConvKind::forward, ir::convolutionOf(conv));
  if (auto conv = dyn_cast<ir::Conv2dInputGradientOp>(op))
    return shapeOf(ConvKind::input_gradient, ir::convolutionOf(conv));
  return shapeOf(ConvKind::filter_gradient, ir::convolutionOf(cast<ir::Conv2dFilterGradientOp>(op)));
}

std::optional<MatmulShape> productOf(const ConvShape &s) {
  if (!isOneWindow(s) || s.groups != 1 || s.channels_last)
    return std::nullopt;
  const int64_t elements = s.patchRows();
  if (s.kind == ConvKind::forward) // x · wᵀ
    return MatmulShape{.type = s.type, .m = s.batch, .n = s.out_channels, .k = elements, .transpose_b = true};
  if (s.kind == ConvKind::input_gradient) // dy · w
    return MatmulShape{.type = s.type, .m = s.batch, .n = elements, .k = s.out_channels};
  // dyᵀ · x
  return MatmulShape{.type = s.type, .m = s.out_channels, .n = elements, .k = s.batch, .transpose_a = true};
}

ConvShape convShapeOf(plan::ConvOp conv) {
  auto axis = [&](unsigned number) {
    return ConvAxis{.input = conv.getInput()[1 + number],
                    .output = conv.getOutput()[1 + number],
                    .kernel = conv.getFilter()[2 + number],
                    .stride = conv.getStrides()[number],
                    .low = conv.getPadding()[2 * number],
                    .high = conv.getPadding()[2 * number + 1],
                    .dilation = conv.getDilation()[number]};
  };
  ConvShape shape;
  shape.kind = static_cast<ConvKind>(conv.getKind());
  shape.type = plan::dataTypeOf(conv.getElement());
  shape.batch = conv.getBatch();
  shape.channels_last = conv.getChannelsLast();
  shape.groups = conv.getGroups();
  shape.in_channels = conv.getInput()[0];
  shape.out_channels = conv.getOutput()[0];
  shape.height = axis(0);
  shape.width = axis(1);
  return shape;
}

} // namespace gpuc
