//===- FuseAttention.cpp - Attention that a model spells out ----------------===//
//
// Contract: where softmax(scale · query · keyᵀ + mask) · value stands op by op, with or without scale, mask
// and dropout, and nothing reads what is between, there is one `gpuc.attention` instead, if the target
// computes it whole: no score is then stored. Masks that a model makes of constants, causal ones above all,
// are known. Sums change their order; what is between is not rounded to 16 bits, which casts did; and a query
// that -∞ hides all keys of gives 0, where the formula gives NaN.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/AttentionViews.h"
#include "passes/base/Target.h"
#include "passes/rewrite/WrittenAttention.h"

#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace gpuc {
#define GEN_PASS_DEF_FUSEATTENTIONPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

class FuseAttentionPass : public impl::FuseAttentionPassBase<FuseAttentionPass> {
public:
  using FuseAttentionPassBase::FuseAttentionPassBase;

private:
  void runOnOperation() override {
    FailureOr<Target> parsed = Target::parse(target, getOperation());
    if (failed(parsed))
      return signalPassFailure();
    SmallVector<WrittenAttention> all = find();
    for (const WrittenAttention &written : all)
      fuse(written, parsed->isCuda());
    if (!all.empty())
      eraseDead();
  }

  /// All of them before anything changes: what is known hangs on the ops that say it.
  SmallVector<WrittenAttention> find() {
    KnownNumbers known;
    SmallVector<WrittenAttention> all;
    getOperation().walk([&](ir::MatmulOp product) {
      if (auto written = WrittenAttention::of(product, known))
        all.push_back(*written);
    });
    return all;
  }

  static void fuse(const WrittenAttention &written, bool isCuda) {
    ir::AttentionOp attention = written.build();
    if (isCuda ? hasCudaAttention(attention) : hasHostAttentionOfAnyType(attention))
      written.replaceBy(attention);
  }

  /// What nobody reads any more, or an attention that the target does not have.
  void eraseDead() {
    getOperation().walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
      if (isOpTriviallyDead(op))
        op->erase();
    });
  }
};

} // namespace
} // namespace gpuc
