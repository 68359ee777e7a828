//===- ReluBehindPooling.cpp - Pool first, then relu -------------------------===//
//
// Contract: no number changes, but perhaps the sign of a zero. relu does not decrease, so that the largest of
// relus is the relu of the largest; and where several elements of a window are 0 only because of relu, which
// of them was chosen does not matter, as relu lets no gradient through to any of them. Behind the pooling
// relu has fewer elements, and what its derivative keeps is what the next layer keeps anyway: what was pooled
// is no longer kept. A norm's result is not kept either way, since its derivative computes it again.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

namespace gpuc {
#define GEN_PASS_DEF_RELUBEHINDPOOLINGPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

bool isNormalised(Value value) {
  while (auto cast = value.getDefiningOp<ir::CastOp>())
    value = cast.getOperand();
  return value.getDefiningOp<ir::BatchNormOp>();
}

void moveBehind(ir::MaxPool2dOp pool) {
  auto relu = pool.getOperand().getDefiningOp<ir::ReluOp>();
  // Indices that the model reads would name other elements of windows in which relu leaves nothing.
  if (!relu || !relu->hasOneUse() || !pool.getIndices().use_empty() || isNormalised(relu.getOperand()))
    return;
  pool.getOperandMutable().assign(relu.getOperand());
  OpBuilder builder(pool->getContext());
  builder.setInsertionPointAfter(pool);
  auto after = ir::ReluOp::create(builder, relu.getLoc(), pool.getValues());
  pool.getValues().replaceAllUsesExcept(after, after);
  relu.erase();
}

class ReluBehindPoolingPass : public impl::ReluBehindPoolingPassBase<ReluBehindPoolingPass> {
  void runOnOperation() override { getOperation().walk(moveBehind); }
};

} // namespace
} // namespace gpuc
