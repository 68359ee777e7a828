//===- Moments.cpp - Mean and squares in one sweep ----------------------------===//
//
// Where channels lie last, a norm's sums over images are cut in two: parts, one for each image, then their
// sum. The mean, and the sum of the squares of what is centred by it, take two sweeps over memory so. They
// take one if each part centres its elements by a shift of its own, and the parts are put together as Chan,
// Golub and LeVeque do (1983): with s the sum of x - shift, and q that of its square,
//
//   meanₚ = shiftₚ - centre + s / count,  mean = centre + Σ meanₚ / parts,
//   squares = Σ (q - s² / count) + count · (Σ meanₚ² - (Σ meanₚ)² / parts).
//
// The shift is the mean of the first of a part's H rows: it is no more than √H standard deviations from the
// part's own mean, so that what is taken from q is at most H times what is left. The centre is the mean of
// all shifts, and what the parts' means lose is no more. So no digit is lost where the mean lies far from
// zero.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/FuseSteps.h"

#include "dialects/gpuc/Expr.h"
#include "passes/codegen/Codegen.h"

namespace gpuc {

using namespace mlir;

namespace {

/// sum(sum(operand, inner), outer).
struct SumOfParts {
  ir::SumOp parts, total;

  static SumOfParts of(Value value) {
    auto total = value.getDefiningOp<ir::SumOp>();
    return {total ? total.getOperand().getDefiningOp<ir::SumOp>() : ir::SumOp(), total};
  }
  explicit operator bool() const { return parts != nullptr; }
  bool foldsAs(SumOfParts other) {
    return parts.getDims() == other.parts.getDims() && total.getDims() == other.total.getDims();
  }
};

/// The mean of x over parts, and the sum of squares of what it centres.
struct Moments {
  Value x;
  ir::DivOp mean;
  SumOfParts sum, squares;
};

int64_t extentOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= shape[dim];
  return count;
}

/// Whether the constant is `number` in each element.
bool isNumber(Value value, double number) {
  auto constant = value.getDefiningOp<ir::ConstantOp>();
  auto given = constant ? dyn_cast_or_null<FloatAttr>(constant.getSplat()) : FloatAttr();
  return given && given.getValueAsDouble() == number;
}

/// Whether kernels find the value in memory, if need be as 16 bits.
bool isInMemory(Value value) {
  if (auto cast = value.getDefiningOp<ir::CastOp>())
    value = cast.getOperand();
  Operation *op = value.getDefiningOp();
  return !op || !isKernelOp(op);
}

std::optional<Moments> momentsOf(ir::SumOp total) {
  Moments found;
  found.squares = SumOfParts::of(total);
  if (!found.squares)
    return std::nullopt;
  auto square = found.squares.parts.getOperand().getDefiningOp<ir::MulOp>();
  auto centred =
      square && square.getLhs() == square.getRhs() ? square.getLhs().getDefiningOp<ir::SubOp>() : ir::SubOp();
  auto spread = centred ? centred.getRhs().getDefiningOp<ir::BroadcastOp>() : ir::BroadcastOp();
  found.mean = spread ? spread.getOperand().getDefiningOp<ir::DivOp>() : ir::DivOp();
  if (!found.mean)
    return std::nullopt;
  found.x = centred.getLhs();
  found.sum = SumOfParts::of(found.mean.getLhs());
  if (!found.sum || found.sum.parts.getOperand() != found.x || !found.sum.foldsAs(found.squares) ||
      !isInMemory(found.x))
    return std::nullopt;
  auto type = cast<RankedTensorType>(found.x.getType());
  const int64_t parts = extentOf(ir::shapeOf(found.sum.parts), found.sum.total.getDims()),
                count = extentOf(type.getShape(), found.sum.parts.getDims());
  const bool isOfAll = isNumber(found.mean.getRhs(), static_cast<double>(parts * count));
  return isOfAll && type.getElementType().isF32() && count > 1 ? std::optional(found) : std::nullopt;
}

/// Of each part, the mean of its first row.
ir::Expr shiftOf(ir::Expr x, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> starts(x.rank(), 0), limits(x.shape()), strides(x.rank(), 1);
  limits[dims.front()] = 1;
  ir::Expr first = x.make<ir::SliceOp>(x.value(), starts, limits, strides);
  return ir::sum(first, dims) / static_cast<double>(extentOf(first.shape(), dims));
}

void sweepOnce(Moments moments) {
  OpBuilder builder(moments.sum.parts);
  ir::Expr x(builder, moments.squares.total.getLoc(), moments.x);
  const ArrayRef<int64_t> inner = moments.sum.parts.getDims(), outer = moments.sum.total.getDims();
  const auto count = static_cast<double>(extentOf(x.shape(), inner));

  ir::Expr shift = shiftOf(x, inner);
  ir::Expr apart = x - ir::broadcastAlong(shift, inner, x.shape());
  ir::Expr s = ir::sum(apart, inner), q = ir::sum(apart * apart, inner);

  ir::Expr offset = s / count, within = max(q - s * offset, 0);

  const auto parts = static_cast<double>(extentOf(shift.shape(), outer));
  ir::Expr centre = ir::sum(shift, outer) / parts;
  // Each sum has its own, or the kernel above would compute them, after one that only has the centre.
  auto means = [&] { return (shift - ir::broadcastAlong(centre, outer, shift.shape())) + offset; };
  ir::Expr again = means();
  ir::Expr total = ir::sum(means(), outer), between = ir::sum(again * again, outer), mean = total / parts;
  ir::Expr squares = ir::sum(within, outer) + count * max(between - total * mean, 0);

  moments.mean.getResult().replaceAllUsesWith(centre + mean);
  moments.squares.total.getResult().replaceAllUsesWith(squares);
}

} // namespace

void takeMomentsInOneSweep(Block &block) {
  SmallVector<ir::SumOp> sums(block.getOps<ir::SumOp>());
  for (ir::SumOp sum : sums)
    if (std::optional<Moments> moments = momentsOf(sum))
      sweepOnce(*moments);
  eraseUnreadKernelOps(block);
}

} // namespace gpuc
