//===- ScanMerging.cpp - Two loops over the same chunks as one ----------------===//
//
// Loss and accuracy of one linear layer are two chunked scans over the same rows: as one, they share the
// logits of a chunk, once CSE has seen the region.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/ScanParts.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace gpuc::ir {
namespace {

/// Takes a later scan into an earlier one of the same block.
struct MergeChunked : OpRewritePattern<ScanOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScanOp later, PatternRewriter &rewriter) const override {
    if (!later.getChunked() || later.getBatchFirst() || later.getInputs().empty())
      return failure();
    for (Operation *user : later.getInputs().front().getUsers()) {
      auto earlier = dyn_cast<ScanOp>(user);
      if (!earlier || !canTakeIn(earlier, later))
        continue;
      merge(earlier, later, rewriter);
      return success();
    }
    return failure();
  }

private:
  /// Whether both go over the same inputs in the same direction, and `later` waits for nothing that `earlier`
  /// does not wait for.
  static bool canTakeIn(ScanOp earlier, ScanOp later) {
    if (earlier == later || earlier->getBlock() != later->getBlock() || !earlier->isBeforeInBlock(later) ||
        !earlier.getChunked() || earlier.getBatchFirst() || earlier.getReverse() != later.getReverse() ||
        earlier.getRecompute() != later.getRecompute() || earlier.getParallel() != later.getParallel() ||
        earlier.getInputs() != later.getInputs())
      return false;
    return llvm::all_of(later->getOperands(), [&](Value operand) {
      Operation *producer = operand.getDefiningOp();
      return !producer || producer->getBlock() != earlier->getBlock() || producer->isBeforeInBlock(earlier);
    });
  }

  static void merge(ScanOp earlier, ScanOp later, PatternRewriter &rewriter) {
    ScanParts into(earlier), from(later);
    SmallVector<Value> arguments; // for those of the later region
    for (const ScanParts::Argument &input : from.inputs)
      arguments.push_back(into.addInput(input.outer));
    size_t firstCarry = into.carries.size();
    for (const ScanParts::Carry &carry : from.carries)
      arguments.push_back(into.addCarry(carry.init));
    for (const ScanParts::Argument &capture : from.captures)
      arguments.push_back(into.addCapture(capture.outer));

    Operation *yield = from.block().getTerminator();
    rewriter.inlineBlockBefore(&from.block(), into.block().getTerminator(), arguments);
    SmallVector<Value> yielded(yield->getOperands()); // by now values of the earlier region
    rewriter.eraseOp(yield);
    for (size_t index = 0; index < from.carries.size(); ++index) {
      into.carries[firstCarry + index].next = yielded[index];
      into.carries[firstCarry + index].result = from.carries[index].result;
    }
    for (auto [index, output] : llvm::enumerate(from.outputs))
      into.outputs.push_back({yielded[from.carries.size() + index], output.result});
    into.rebuild(rewriter);
    rewriter.eraseOp(later);
  }
};

} // namespace

void addScanMerging(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<MergeChunked>(context);
}

} // namespace gpuc::ir
