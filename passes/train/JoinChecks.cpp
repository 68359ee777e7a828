//===- JoinChecks.cpp - The copy that counts NaN, and the step, in one -------===//
//
// Contract: @train_step_checks, of gpuc-check-numerics, is gone; what it does stands at the front of the
// step, whose last result is its list of counts. Both consist of kernels and library calls by now, and
// nothing decides any more what is computed with what: the step's own ops are those of a step that counts
// nothing.
//
// At the front, for the counts are all that is left of it when the step begins: both take the same bytes one
// after the other.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/Inline.h"

namespace gpuc {
#define GEN_PASS_DEF_JOINCHECKSPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

class JoinChecksPass : public impl::JoinChecksPassBase<JoinChecksPass> {
  void runOnOperation() override {
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (auto name = function->getAttrOfType<FlatSymbolRefAttr>(kChecksOfAttr)) {
        join(function, getOperation().lookupSymbol<func::FuncOp>(name.getAttr()));
        function.erase();
      }
  }

  static void join(func::FuncOp checks, func::FuncOp step) {
    Block &body = step.getBody().front();
    auto builder = OpBuilder::atBlockBegin(&body);
    SmallVector<Value> counts = cloneBody(builder, checks, body.getArguments());
    for (auto [index, count] : llvm::enumerate(counts)) {
      unsigned number = step.getNumResults();
      (void)step.insertResult(number, count.getType(), checks.getResultAttrDict(index));
      body.getTerminator()->insertOperands(number, count);
    }
  }
};

} // namespace
} // namespace gpuc
