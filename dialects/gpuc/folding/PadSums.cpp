//===- PadSums.cpp - Sums of pads that fill one another's gaps ---------------===//
//
// The cotangent of a slice is a pad with zeros. A value that is cut into pieces, as a projection into
// queries, keys and values, thus gets a sum of pads, of which each has numbers where all others have zeros:
// the pieces one after another.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/GpucOps.h"
#include "dialects/gpuc/TypeChecks.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace gpuc::ir {
namespace {

/// The one dimension that is padded, with zeros around the operand; none if there are others.
std::optional<size_t> paddedDim(PadOp pad) {
  std::optional<size_t> found;
  for (size_t dim = 0; dim < pad.getLow().size(); ++dim) {
    if (pad.getInterior()[dim] != 0)
      return std::nullopt;
    if (pad.getLow()[dim] == 0 && pad.getHigh()[dim] == 0)
      continue;
    if (found)
      return std::nullopt;
    found = dim;
  }
  return pad.getValue().isZero() ? found : std::nullopt;
}

/// More pieces than this are not looked for: each sum of a long chain would look at all before it.
constexpr size_t kMostPieces = 256;

/// The pads that `value` is a sum of; fails if anything else is added, or too much.
LogicalResult collectPads(Value value, SmallVectorImpl<PadOp> &pads) {
  SmallVector<Value> terms{value};
  for (size_t next = 0; next < terms.size(); ++next) {
    if (auto pad = terms[next].getDefiningOp<PadOp>()) {
      pads.push_back(pad);
      continue;
    }
    auto add = terms[next].getDefiningOp<AddOp>();
    if (!add || !add->hasOneUse() || terms.size() > kMostPieces)
      return failure();
    llvm::append_range(terms, add->getOperands());
  }
  return success();
}

/// Whether the pads' operands, in this order, fill dimension `dim` from end to end.
bool fillTogether(ArrayRef<PadOp> pads, size_t dim) {
  int64_t end = 0;
  for (PadOp pad : pads) {
    int64_t extent = shapeOf(pad.getOperand())[dim];
    if (paddedDim(pad) != dim || ShapedType::isDynamic(extent) || pad.getLow()[dim] != end)
      return false;
    end += extent;
  }
  return end == shapeOf(pads.front()->getResult(0))[dim];
}

/// Exact, but that -0 stays what it is: added to a zero it would be 0.
struct JoinPads : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp sum, PatternRewriter &rewriter) const override {
    SmallVector<PadOp> pads;
    if (failed(collectPads(sum.getLhs(), pads)) || failed(collectPads(sum.getRhs(), pads)))
      return failure();
    std::optional<size_t> dim = paddedDim(pads.front());
    if (!dim)
      return failure();
    llvm::sort(pads, [&](PadOp a, PadOp b) { return a.getLow()[*dim] < b.getLow()[*dim]; });
    if (!fillTogether(pads, *dim))
      return failure();
    SmallVector<Value> pieces =
        llvm::map_to_vector(pads, [](PadOp pad) -> Value { return pad.getOperand(); });
    rewriter.replaceOpWithNewOp<ConcatOp>(sum, sum.getType(), pieces, *dim);
    return success();
  }
};

} // namespace

void AddOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<JoinPads>(context);
}

} // namespace gpuc::ir
