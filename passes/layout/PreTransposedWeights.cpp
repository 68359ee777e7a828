//===- PreTransposedWeights.cpp - Transposed once, before a loop ------------===//

#include "passes/layout/LayoutSteps.h"

#include "dialects/gpuc/ScanParts.h"
#include "dialects/gpuc/Tf32.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace gpuc {
namespace {

bool hasFewRows(ir::MatmulOp product, const TargetDescription &device) {
  auto type = cast<RankedTensorType>(product.getType());
  return type.getRank() == 2 && type.getDimSize(0) <= device.mostPreTransposedRows;
}

/// What stands outside for an argument of the region that it only reads; null for any other value.
Value captureOf(const ir::ScanParts &parts, Value inner) {
  for (const ir::ScanParts::Argument &capture : parts.captures)
    if (capture.inner == inner)
      return capture.outer;
  return {};
}

} // namespace

void preTransposeWeights(ir::ScanOp scan, const TargetDescription &device) {
  if (scan.getChunked() || scan.getTripCount() < device.leastPreTransposedTrips)
    return;
  ir::ScanParts parts(scan);
  IRRewriter rewriter(scan.getContext());
  bool changed = false;
  for (auto product : llvm::make_early_inc_range(parts.block().getOps<ir::MatmulOp>())) {
    Value weight = captureOf(parts, product.getRhs());
    if (!weight || !product.getTransposeRhs() || !hasFewRows(product, device))
      continue;
    rewriter.setInsertionPoint(scan);
    auto type = cast<RankedTensorType>(weight.getType());
    Value transposed = ir::TransposeOp::create(rewriter, product.getLoc(),
                                               type.clone({type.getDimSize(1), type.getDimSize(0)}), weight,
                                               ArrayRef<int64_t>{1, 0});
    rewriter.setInsertionPoint(product);
    auto straight =
        ir::MatmulOp::create(rewriter, product.getLoc(), product.getLhs(), parts.addCapture(transposed),
                             product.getTransposeLhs(), /*transpose_rhs=*/false);
    ir::inheritTf32(product, straight);
    parts.replace(rewriter, product.getResult(), straight.getResult());
    rewriter.eraseOp(product);
    changed = true;
  }
  if (changed)
    parts.rebuild(rewriter);
}

} // namespace gpuc
