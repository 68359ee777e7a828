//===- ConvOps.cpp - Types, costs and derivatives of convolutions -----------===//

#include "dialects/gpuc/Convolutions.h"
#include "dialects/gpuc/VjpHelpers.h"
#include "dialects/gpuc/ops/WindowChecks.h"

using namespace mlir;

namespace gpuc::ir {

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

RankedTensorType permuted(RankedTensorType type, ArrayRef<int64_t> permutation) {
  Shape shape;
  for (int64_t dim : permutation)
    shape.push_back(type.getDimSize(dim));
  return RankedTensorType::get(shape, type.getElementType());
}

static LogicalResult checkConvNumbers(std::optional<Location> location, StringRef op,
                                      const WindowNumbers &numbers, int64_t groups) {
  if (succeeded(checkWindowNumbers(numbers)) && groups >= 1 && groups <= mostWindowNumber)
    return success();
  return emitOptionalError(
      location, "'", op, "' op strides [", numbers.strides, "], padding [", numbers.padding, "], dilation [",
      numbers.dilation, "] and groups ", groups,
      " must be two numbers of at least 1, four of at least 0, two of at least 1 and one of "
      "at least 1, all less than 2^31 [conv_C2]");
}

FailureOr<RankedTensorType> inferConv2d(std::optional<Location> location, StringRef op,
                                        RankedTensorType inputInMemory, RankedTensorType filterInMemory,
                                        WindowNumbers numbers, int64_t groups) {
  auto fail = [&](auto... text) {
    return emitOptionalError(location, "'", op, "' op input ", inputInMemory, " and filter ", filterInMemory,
                             " ", text...);
  };
  RankedTensorType input = inputInMemory, filter = filterInMemory;
  if (input.getRank() != 4 || filter.getRank() != 4 || !filter.hasStaticShape() ||
      input.getElementType() != filter.getElementType())
    return fail("must be of rank 4 and of one element type, the filter without a batch [conv_C1]");
  if (numbers.channelsLast) {
    input = permuted(input, kToChannelsFirst);
    filter = permuted(filter, kToChannelsFirst);
  }
  numbers.window = filter.getShape().drop_front(2);
  if (failed(checkConvNumbers(location, op, numbers, groups)))
    return failure();
  int64_t channels = input.getDimSize(1), outputs = filter.getDimSize(0);
  if (channels % groups != 0 || outputs % groups != 0 || filter.getDimSize(1) != channels / groups)
    return fail("do not agree in ", groups, " groups: the filter has ", filter.getDimSize(1),
                " input channels, ", channels, " / ", groups, " are wanted, and its ", outputs,
                " outputs must be a multiple of the groups [conv_C3]");
  const std::array<Windows, 2> both = numbers.windows().both();
  Shape shape = {input.getDimSize(0), outputs};
  for (auto [extent, along] : llvm::zip_equal(input.getShape().drop_front(2), both)) {
    int64_t count = extent <= mostWindowNumber ? along.count(extent) : 0;
    if (along.size < 1 || along.size > mostWindowNumber || extent < 1 || count < 1 ||
        extent + along.low + along.high > mostWindowNumber)
      return fail("do not fit: the filter spans ", along.span(), " of ", extent, " elements with ", along.low,
                  " and ", along.high, " of padding, and no extent may be 0 or as large as 2^31 [conv_C4]");
    shape.push_back(count);
  }
  auto result = RankedTensorType::get(shape, input.getElementType());
  return numbers.channelsLast ? permuted(result, kToChannelsLast) : result;
}

static WindowNumbers numbersOf(auto op) {
  return {{}, op.getStrides(), op.getPadding(), op.getDilation(), op.getChannelsLast()};
}

FailureOr<Types> Conv2dOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  return oneType(inferConv2d(location, Conv2dOp::getOperationName(), tensorType(adaptor.getInput()),
                             tensorType(adaptor.getFilter()), numbersOf(adaptor), adaptor.getGroups()));
}

template <typename Op> static LogicalResult verifyGradient(Op op, Value input, Value filter) {
  auto expected = inferConv2d(op.getLoc(), Op::getOperationName(), tensorType(input), tensorType(filter),
                              numbersOf(op), op.getGroups());
  if (failed(expected))
    return failure();
  return checkType(op, "conv_C5", "cotangent", op.getCotangent().getType(), *expected);
}

LogicalResult Conv2dInputGradientOp::verify() { return verifyGradient(*this, getResult(), getFilter()); }
LogicalResult Conv2dFilterGradientOp::verify() { return verifyGradient(*this, getInput(), getResult()); }

//===----------------------------------------------------------------------===//
// What each operand is to the others
//===----------------------------------------------------------------------===//

static Convolution convolution(auto op, Value input, Value filter, Value result) {
  auto channelsFirst = [&](Value value) {
    RankedTensorType type = tensorType(value);
    return op.getChannelsLast() ? permuted(type, kToChannelsFirst) : type;
  };
  RankedTensorType taps = channelsFirst(filter);
  WindowNumbers numbers = numbersOf(op);
  numbers.window = taps.getShape().drop_front(2);
  return {channelsFirst(input),
          taps,
          channelsFirst(result),
          numbers.windows(),
          static_cast<int64_t>(op.getGroups()),
          op.getChannelsLast()};
}

Convolution convolutionOf(Conv2dOp op) {
  return convolution(op, op.getInput(), op.getFilter(), op.getResult());
}
Convolution convolutionOf(Conv2dInputGradientOp op) {
  return convolution(op, op.getResult(), op.getFilter(), op.getCotangent());
}
Convolution convolutionOf(Conv2dFilterGradientOp op) {
  return convolution(op, op.getInput(), op.getResult(), op.getCotangent());
}

/// One fused multiply-add for each product, whichever of the three is computed.
static int64_t flopsOf(const Convolution &convolution) {
  int64_t products = elementCount(convolution.result);
  for (int64_t extent : convolution.filter.getShape().drop_front())
    products *= extent;
  return 2 * products;
}

int64_t Conv2dOp::getFlops() { return flopsOf(convolutionOf(*this)); }
int64_t Conv2dInputGradientOp::getFlops() { return flopsOf(convolutionOf(*this)); }
int64_t Conv2dFilterGradientOp::getFlops() { return flopsOf(convolutionOf(*this)); }

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//
//
// With ⟨a, b⟩ the sum of products, all three are one trilinear form: ⟨g, conv2d(x, w)⟩ =
// ⟨x, input_gradient(g, w)⟩ = ⟨w, filter_gradient(g, x)⟩. So the cotangent of one of x, w and g is the op
// that is left, of the other two.

static Value conv2d(Expr ct, auto op, Value input, Value filter) {
  return ct.make<Conv2dOp>(input, filter, op.getStrides(), op.getPadding(), op.getDilation(), op.getGroups(),
                           op.getChannelsLast());
}
template <typename Gradient> static Value gradient(Expr ct, auto op, Value of, Value cotangent, Value other) {
  return ct.make<Gradient>(of.getType(), cotangent, other, op.getStrides(), op.getPadding(), op.getDilation(),
                           op.getGroups(), op.getChannelsLast());
}

GPUC_RESIDUALS(Conv2dOp, getInput(), getFilter())
GPUC_VJP_BODY(Conv2dOp) {
  Value x = op.getInput(), w = op.getFilter();
  return Cotangents{gradient<Conv2dInputGradientOp>(ct, op, x, ct, w),
                    gradient<Conv2dFilterGradientOp>(ct, op, w, ct, x)};
}

GPUC_RESIDUALS(Conv2dInputGradientOp, getCotangent(), getFilter())
GPUC_VJP_BODY(Conv2dInputGradientOp) {
  Value g = op.getCotangent(), w = op.getFilter();
  return Cotangents{conv2d(ct, op, ct, w), gradient<Conv2dFilterGradientOp>(ct, op, w, g, ct)};
}

GPUC_RESIDUALS(Conv2dFilterGradientOp, getCotangent(), getInput())
GPUC_VJP_BODY(Conv2dFilterGradientOp) {
  Value g = op.getCotangent(), x = op.getInput();
  return Cotangents{conv2d(ct, op, x, ct), gradient<Conv2dInputGradientOp>(ct, op, x, g, ct)};
}

} // namespace gpuc::ir
