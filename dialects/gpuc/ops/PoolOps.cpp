//===- PoolOps.cpp - Types, costs and derivatives of poolings ---------------===//

#include "dialects/gpuc/VjpHelpers.h"
#include "dialects/gpuc/ops/WindowChecks.h"

using namespace mlir;

namespace gpuc::ir {

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Whether each of the windows holds an element of the image.
static bool noneIsEmpty(const Windows &along, int64_t extent) {
  int64_t last = (along.count(extent) - 1) * along.stride - along.low;
  if (along.count(extent) < 1 || last >= extent)
    return false;
  // The others that may miss the image begin before it.
  for (int64_t first = -along.low; first < 0 && first <= last; first += along.stride) {
    int64_t steps = llvm::divideCeil(-first, along.dilation);
    if (steps >= along.size || first + steps * along.dilation >= extent)
      return false;
  }
  return true;
}

FailureOr<RankedTensorType> inferPooling(std::optional<Location> location, StringRef op,
                                         RankedTensorType image, const WindowNumbers &numbers) {
  auto fail = [&](auto... text) { return emitOptionalError(location, "'", op, "' op ", text...); };
  if (image.getRank() != 4)
    return fail("images ", image,
                " must have rank 4: ", numbers.channelsLast ? "(N, H, W, C)" : "(N, C, H, W)", " [pool_C1]");
  bool sized = numbers.window.size() == 2 && llvm::all_of(numbers.window, [](int64_t size) {
                 return size >= 1 && size <= mostWindowNumber;
               });
  if (!sized || failed(checkWindowNumbers(numbers)))
    return fail(
        "window [", numbers.window, "], strides [", numbers.strides, "], padding [", numbers.padding,
        "] and dilation [", numbers.dilation,
        "] must be two numbers of at least 1, two of at least 1, four of at least 0 and two of at least "
        "1, all less than 2^31 [pool_C2]");
  const Windows2d windows = numbers.windows();
  const std::array<Windows, 2> both = windows.both();
  Shape shape(image.getShape());
  for (auto [dim, along] : llvm::zip_equal(std::array{windows.rowDim, windows.columnDim()}, both)) {
    int64_t extent = image.getDimSize(dim);
    if (extent > mostWindowNumber || !noneIsEmpty(along, extent))
      return fail("images ", image, ": of windows that span ", along.span(), " in steps of ", along.stride,
                  " over ", extent, " elements with ", along.low, " and ", along.high,
                  " of padding there must be one, and each must hold an element [pool_C3]");
    shape[dim] = along.count(extent);
  }
  return RankedTensorType::get(shape, image.getElementType());
}

static RankedTensorType indicesOf(RankedTensorType values) {
  return values.clone(IntegerType::get(values.getContext(), 64));
}

FailureOr<Types> MaxPool2dOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  auto values = inferPooling(location, MaxPool2dOp::getOperationName(), tensorType(adaptor.getOperand()),
                             windowNumbersOf(adaptor));
  if (failed(values))
    return failure();
  return Types{*values, indicesOf(*values)};
}

FailureOr<Types> AvgPool2dOp::inferTypes(std::optional<Location> location, Adaptor adaptor) {
  return oneType(inferPooling(location, AvgPool2dOp::getOperationName(), tensorType(adaptor.getOperand()),
                              windowNumbersOf(adaptor)));
}

IntegerType narrowestIndex(MLIRContext *context, ArrayRef<int64_t> window) {
  const int64_t places = window[0] * window[1]; // Both are less than 2^31.
  if (places <= 256)
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  return IntegerType::get(context, places <= mostWindowNumber ? 32 : 64);
}

/// `indices` are what a pooling whose values are of that type may give.
static LogicalResult verifyIndices(Operation *op, Value indices, RankedTensorType values,
                                   ArrayRef<int64_t> window) {
  RankedTensorType wide = indicesOf(values), narrow = wide.clone(narrowestIndex(op->getContext(), window));
  if (indices.getType() == wide || indices.getType() == narrow)
    return success();
  return op->emitOpError("indices must be ")
         << wide << " or " << narrow << ", but are " << indices.getType() << " [pool_C5]";
}

/// The window decides which, and is not known here.
bool MaxPool2dOp::isCompatibleReturnTypes(TypeRange inferred, TypeRange given) {
  return inferred.size() == given.size() && inferred[0] == given[0] &&
         succeeded(verifyCompatibleShape(inferred[1], given[1]));
}

LogicalResult MaxPool2dOp::verify() {
  return verifyIndices(*this, getIndices(), tensorType(getValues()), getWindow());
}

/// `pooled` (and `indices`) are what a pooling of `image` gives.
static LogicalResult verifyPooled(Operation *op, Value image, const WindowNumbers &numbers, StringRef name,
                                  Value pooled, Value indices) {
  auto type = inferPooling(op->getLoc(), op->getName().getStringRef(), tensorType(image), numbers);
  if (failed(type) || (indices && failed(verifyIndices(op, indices, *type, numbers.window))))
    return failure();
  return checkType(op, "pool_C4", name, pooled.getType(), *type);
}

LogicalResult MaxPool2dGradientOp::verify() {
  return verifyPooled(*this, getResult(), windowNumbersOf(*this), "cotangent", getCotangent(), getIndices());
}
LogicalResult MaxPool2dGatherOp::verify() {
  return verifyPooled(*this, getOperand(), windowNumbersOf(*this), "result", getResult(), getIndices());
}
LogicalResult AvgPool2dGradientOp::verify() {
  return verifyPooled(*this, getResult(), windowNumbersOf(*this), "cotangent", getCotangent(), {});
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// One operation for each element of each window.
static int64_t flopsOver(ArrayRef<int64_t> window, Value pooled) {
  return window[0] * window[1] * elementCount(pooled.getType());
}

int64_t MaxPool2dOp::getFlops() { return flopsOver(getWindow(), getValues()); }
int64_t MaxPool2dGradientOp::getFlops() { return elementCount(getCotangent().getType()); }
int64_t MaxPool2dGatherOp::getFlops() { return 0; }
int64_t AvgPool2dOp::getFlops() { return flopsOver(getWindow(), getResult()); }
int64_t AvgPool2dGradientOp::getFlops() { return flopsOver(getWindow(), getCotangent()); }

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

template <typename To> static Value maxPooling(Expr ct, auto op, Type type, Value indices) {
  return ct.make<To>(type, ct.value(), indices, op.getWindow(), op.getStrides(), op.getPadding(),
                     op.getDilation(), op.getChannelsLast());
}

GPUC_RESIDUALS(MaxPool2dOp, getIndices())
GPUC_VJP_BODY(MaxPool2dOp) {
  return Cotangents{maxPooling<MaxPool2dGradientOp>(ct, op, op.getOperand().getType(), op.getIndices())};
}

GPUC_RESIDUALS(MaxPool2dGradientOp, getIndices())
GPUC_VJP_BODY(MaxPool2dGradientOp) {
  Type type = op.getCotangent().getType();
  return Cotangents{maxPooling<MaxPool2dGatherOp>(ct, op, type, op.getIndices()), Value()};
}

GPUC_RESIDUALS(MaxPool2dGatherOp, getIndices())
GPUC_VJP_BODY(MaxPool2dGatherOp) {
  Type type = op.getOperand().getType();
  return Cotangents{maxPooling<MaxPool2dGradientOp>(ct, op, type, op.getIndices()), Value()};
}

GPUC_RESIDUALS(AvgPool2dOp)
GPUC_VJP_BODY(AvgPool2dOp) {
  return Cotangents{ct.make<AvgPool2dGradientOp>(op.getOperand().getType(), ct.value(), op.getWindow(),
                                                 op.getStrides(), op.getPadding(), op.getExcludePadding(),
                                                 op.getChannelsLast())};
}

GPUC_RESIDUALS(AvgPool2dGradientOp)
GPUC_VJP_BODY(AvgPool2dGradientOp) {
  return Cotangents{ct.make<AvgPool2dOp>(ct.value(), op.getWindow(), op.getStrides(), op.getPadding(),
                                         op.getExcludePadding(), op.getChannelsLast())};
}

} // namespace gpuc::ir
