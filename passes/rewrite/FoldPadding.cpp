//===- FoldPadding.cpp - Zeros around images as padding of convolutions -----===//
//
// Contract: zeros that a model puts around an image before a convolution become padding of the convolution,
// and rows and columns that it cuts off behind one are not computed: they are padding less. No image is then
// copied, forward or back, and no cotangent computed of what is thrown away. Sums may change their order, as
// another convolution has another; and where a filter is infinite, a zero that was put there by hand made
// NaN, which padding may leave out.
//
// So TensorFlow's "same" padding comes, which has one row more at the bottom than at the top, and causal
// convolutions over time: padded on the left alone, or on both sides and then cut.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialects/gpuc/Convolutions.h"
#include "dialects/gpuc/TypeChecks.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace gpuc {
#define GEN_PASS_DEF_FOLDPADDINGPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

constexpr size_t kRows = 2, kColumns = 3; ///< Dimensions of images (N, C, H, W).

/// A convolution over time is one over images of height or width 1: which of the two `image` has that
/// `series` (N, C, T) has not.
std::optional<size_t> addedDim(ArrayRef<int64_t> series, ArrayRef<int64_t> image) {
  if (series.size() != 3 || image.size() != 4)
    return std::nullopt;
  for (size_t dim : {kRows, kColumns}) {
    ir::Shape with(series);
    with.insert(with.begin() + dim, 1);
    if (image == ArrayRef(with))
      return dim;
  }
  return std::nullopt;
}

void eraseDead(Operation *op) {
  while (op && isOpTriviallyDead(op)) {
    Operation *before = op->getNumOperands() > 0 ? op->getOperand(0).getDefiningOp() : nullptr;
    op->erase();
    op = before;
  }
}

//===----------------------------------------------------------------------===//
// What a convolution reads
//===----------------------------------------------------------------------===//

/// The zeros that a pad put around the rows and columns of an image, perhaps as a series.
struct Border {
  ir::PadOp pad;
  std::optional<size_t> added; ///< The dimension that the image has and the series has not.
  ir::Shape low, high;         ///< Of the image's dimensions.

  static std::optional<Border> of(Value image) {
    auto reshape = image.getDefiningOp<ir::ReshapeOp>();
    Value padded = reshape ? reshape.getOperand() : image;
    auto pad = padded.getDefiningOp<ir::PadOp>();
    if (!pad || !pad.getValue().isZero() || llvm::any_of(pad.getInterior(), [](int64_t n) { return n != 0; }))
      return std::nullopt;
    Border border{pad, std::nullopt, ir::Shape(pad.getLow()), ir::Shape(pad.getHigh())};
    if (reshape) {
      border.added = addedDim(ir::shapeOf(padded), ir::shapeOf(image));
      if (!border.added)
        return std::nullopt;
      border.low.insert(border.low.begin() + *border.added, 0);
      border.high.insert(border.high.begin() + *border.added, 0);
    }
    const bool isOfChannels = border.low[1] != 0 || border.high[1] != 0;
    const bool isEmpty = llvm::is_contained(ir::shapeOf(pad.getOperand()), 0);
    return isOfChannels || isEmpty ? std::nullopt : std::optional(border);
  }

  /// The image without it.
  Value inside(OpBuilder &builder, Location loc) {
    Value operand = pad.getOperand();
    if (!added)
      return operand;
    ir::Shape shape(ir::shapeOf(operand));
    shape.insert(shape.begin() + *added, 1);
    return ir::ReshapeOp::create(builder, loc, ir::tensorType(operand).clone(shape), operand);
  }
};

void readInside(ir::Conv2dOp conv) {
  while (std::optional<Border> border = Border::of(conv.getInput())) {
    ir::Shape padding(conv.getPadding());
    for (size_t dim : {kRows, kColumns}) {
      padding[2 * dim - 4] += border->low[dim];
      padding[2 * dim - 3] += border->high[dim];
    }
    OpBuilder builder(conv);
    Operation *before = conv.getInput().getDefiningOp();
    conv.getInputMutable().assign(border->inside(builder, conv.getLoc()));
    conv.setPadding(padding);
    eraseDead(before);
  }
}

//===----------------------------------------------------------------------===//
// What is cut off a convolution's result
//===----------------------------------------------------------------------===//

/// Elements `first` up to, not including, `end`.
struct Range {
  int64_t first, end;
};

/// The padding of windows that lie where those of the range lie; none if they are further in than padding
/// says.
std::optional<std::array<int64_t, 2>> paddingOf(Range range, const ir::Windows &along, int64_t extent) {
  const int64_t low = along.low - range.first * along.stride;
  const int64_t high = (range.end - range.first - 1) * along.stride + along.span() - extent - low;
  // Elements behind the last window, fewer than a stride, need no padding to be left out.
  if (low < 0 || high <= -along.stride || range.first >= range.end)
    return std::nullopt;
  return std::array{low, std::max<int64_t>(high, 0)};
}

/// The same of a transposed convolution, whose result is what windows lie over.
std::optional<std::array<int64_t, 2>> paddingOfTransposed(Range range, const ir::Windows &along,
                                                          int64_t extent) {
  if (range.first >= range.end)
    return std::nullopt;
  return std::array{along.low + range.first, along.high + extent - range.end};
}

/// A slice of a convolution's rows or columns, behind a bias and without the dimension that a series has not.
struct CutResult {
  ir::SliceOp slice;
  ir::ReshapeOp series;
  ir::AddOp bias;
  ir::BroadcastOp broadcast;
  Operation *conv = nullptr;

  static std::optional<CutResult> of(ir::SliceOp slice) {
    CutResult cut{slice, {}, {}, {}};
    Value value = slice.getOperand();
    if (cut.series = value.getDefiningOp<ir::ReshapeOp>(); cut.series && cut.series->hasOneUse())
      value = cut.series.getOperand();
    if (cut.bias = value.getDefiningOp<ir::AddOp>(); cut.bias && cut.bias->hasOneUse()) {
      cut.broadcast = cut.bias.getRhs().getDefiningOp<ir::BroadcastOp>();
      value = cut.bias.getLhs();
    }
    cut.conv = value.getDefiningOp();
    const bool isWhole = cut.conv && cut.conv->hasOneUse() && (!cut.bias || cut.isBiasOfChannels());
    return isWhole ? std::optional(cut) : std::nullopt;
  }

  /// Rows and columns that are left; none if the slice cuts elsewhere, too, or leaves some out in between.
  std::optional<std::array<Range, 2>> ranges() {
    ir::Shape image(ir::shapeOf(conv->getResult(0))), sliced(ir::shapeOf(slice.getOperand()));
    std::optional<size_t> added = series ? addedDim(sliced, image) : std::nullopt;
    if (series && !added)
      return std::nullopt;
    std::array<Range, 2> found{Range{0, image[kRows]}, Range{0, image[kColumns]}};
    for (size_t dim = 0; dim < sliced.size(); ++dim) {
      const int64_t first = slice.getStarts()[dim];
      const int64_t end = slice.getLimits()[dim] < 0 ? sliced[dim] : slice.getLimits()[dim];
      const bool isBatchOrChannel = dim < kRows;
      if (slice.getStrides()[dim] != 1 || (isBatchOrChannel && (first != 0 || end != sliced[dim])))
        return std::nullopt;
      if (!isBatchOrChannel)
        found[(added == kRows ? kColumns : dim) - kRows] = {first, end};
    }
    return found;
  }

  /// What the convolution computes now, where it stands, as the slice has it.
  void replaceBy(Value result) {
    OpBuilder builder(slice);
    auto type = ir::tensorType(result);
    if (bias) {
      auto repeated = ir::BroadcastOp::create(builder, broadcast.getLoc(), type, broadcast.getOperand(),
                                              broadcast.getDims());
      result = ir::AddOp::create(builder, bias.getLoc(), result, repeated);
    }
    if (series)
      result = ir::ReshapeOp::create(builder, series.getLoc(), slice.getType(), result);
    Operation *before = slice.getOperand().getDefiningOp();
    slice.getResult().replaceAllUsesWith(result);
    slice.erase();
    eraseDead(before);
  }

private:
  /// A number for each channel: of rows and columns it has none, or one of which there is one alone.
  bool isBiasOfChannels() {
    return broadcast &&
           llvm::all_of(llvm::zip_equal(broadcast.getDims(), ir::shapeOf(broadcast.getOperand())),
                        [](auto of) { return std::get<0>(of) < 2 || std::get<1>(of) == 1; });
  }
};

/// Of a convolution or a transposed one: `windowed` is what its windows lie over.
template <typename Op, typename PaddingOf>
void computeLess(CutResult &cut, Op conv, Value windowed, PaddingOf paddingOf) {
  std::optional<std::array<Range, 2>> ranges = cut.ranges();
  if (conv.getChannelsLast() || !ranges)
    return;
  const std::array<ir::Windows, 2> both = ir::convolutionOf(conv).windows.both();
  ir::Shape padding, shape(ir::shapeOf(conv.getResult()));
  for (size_t which : {0, 1}) {
    auto along = paddingOf((*ranges)[which], both[which], ir::shapeOf(windowed)[kRows + which]);
    if (!along)
      return;
    padding.append(along->begin(), along->end());
    shape[kRows + which] = (*ranges)[which].end - (*ranges)[which].first;
  }
  conv.setPadding(padding);
  conv.getResult().setType(ir::tensorType(conv.getResult()).clone(shape));
  cut.replaceBy(conv.getResult());
}

void cutAway(ir::SliceOp slice) {
  std::optional<CutResult> cut = CutResult::of(slice);
  if (!cut)
    return;
  if (auto conv = dyn_cast<ir::Conv2dOp>(cut->conv))
    computeLess(*cut, conv, conv.getInput(), paddingOf);
  else if (auto transposed = dyn_cast<ir::Conv2dInputGradientOp>(cut->conv))
    computeLess(*cut, transposed, transposed.getResult(), paddingOfTransposed);
}

class FoldPaddingPass : public impl::FoldPaddingPassBase<FoldPaddingPass> {
  void runOnOperation() override {
    getOperation().walk(cutAway);
    getOperation().walk(readInside);
  }
};

} // namespace
} // namespace gpuc
