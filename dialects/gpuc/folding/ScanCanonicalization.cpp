//===- ScanCanonicalization.cpp - Scans without what nobody needs ------------===//

#include "dialects/gpuc/ScanParts.h"
#include "dialects/gpuc/TypeChecks.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace gpuc::ir {
namespace {

/// Removes what nothing uses and what is the same as something else.
class Simplification {
public:
  Simplification(ScanOp op, PatternRewriter &rewriter) : parts_(op), rewriter_(rewriter) {}

  bool run() {
    dropOutputs();
    forwardInvariants();
    dropDeadCarries();
    takeInConstants();
    for (auto *arguments : {&parts_.inputs, &parts_.captures}) {
      mergeEqual(*arguments);
      eraseIf(*arguments, [](const ScanParts::Argument &argument) { return argument.inner.use_empty(); });
    }
    if (changed_)
      parts_.rebuild(rewriter_);
    return changed_;
  }

private:
  template <typename List, typename Predicate> void eraseIf(List &list, Predicate predicate) {
    size_t before = list.size();
    llvm::erase_if(list, predicate);
    changed_ |= list.size() != before;
  }

  /// Outputs that nobody reads, that equal another one, or that are an input again.
  void dropOutputs() {
    DenseMap<Value, Value> stacks; // slice → a stack of it
    for (const ScanParts::Argument &input : parts_.inputs)
      stacks[input.inner] = input.outer;
    eraseIf(parts_.outputs, [&](const ScanParts::Output &output) {
      if (output.result.use_empty())
        return true;
      auto [known, isNew] = stacks.try_emplace(output.slice, output.result);
      if (!isNew)
        rewriter_.replaceAllUsesWith(output.result, known->second);
      return !isNew;
    });
  }

  /// What each iteration hands on as it came is no carry, but a capture.
  void forwardInvariants() {
    eraseIf(parts_.carries, [&](const ScanParts::Carry &carry) {
      if (carry.next != carry.inner)
        return false;
      parts_.captures.push_back({carry.init, carry.inner});
      rewriter_.replaceAllUsesWith(carry.result, carry.init);
      return true;
    });
  }

  /// Carries whose final value nobody reads, and which only serve themselves or one another.
  void dropDeadCarries() {
    SetVector<Value> live;
    for (const ScanParts::Output &output : parts_.outputs)
      live.insert(output.slice);
    for (const ScanParts::Carry &carry : parts_.carries)
      if (!carry.result.use_empty())
        live.insert(carry.next);
    for (size_t next = 0; next < live.size(); ++next) {
      if (Operation *op = live[next].getDefiningOp())
        live.insert_range(op->getOperands());
      for (const ScanParts::Carry &carry : parts_.carries)
        if (carry.inner == live[next])
          live.insert(carry.next);
    }
    auto isDead = [&](const ScanParts::Carry &carry) {
      return carry.result.use_empty() && !live.contains(carry.inner);
    };
    if (llvm::none_of(parts_.carries, isDead))
      return;
    eraseIf(parts_.carries, isDead);
    parts_.updateYield(rewriter_);
    SmallVector<Operation *> dead;
    for (Operation &op : parts_.block().without_terminator())
      if (llvm::none_of(op.getResults(), [&](Value result) { return live.contains(result); }))
        dead.push_back(&op);
    for (Operation *op : llvm::reverse(dead)) // users first
      rewriter_.eraseOp(op);
  }

  /// A number that is the same everywhere is better known in the region.
  void takeInConstants() {
    for (const ScanParts::Argument &capture : parts_.captures) {
      auto constant = capture.outer.getDefiningOp<ConstantOp>();
      if (!constant || !constant.getSplat() || capture.inner.use_empty())
        continue;
      OpBuilder::InsertionGuard guard(rewriter_);
      rewriter_.setInsertionPointToStart(&parts_.block());
      parts_.replace(rewriter_, capture.inner, rewriter_.clone(*constant)->getResult(0));
      changed_ = true;
    }
  }

  void mergeEqual(SmallVectorImpl<ScanParts::Argument> &arguments) {
    DenseMap<Value, Value> known;
    for (const ScanParts::Argument &argument : arguments)
      if (auto [first, isNew] = known.try_emplace(argument.outer, argument.inner); !isNew)
        parts_.replace(rewriter_, argument.inner, first->second);
  }

  ScanParts parts_;
  PatternRewriter &rewriter_;
  bool changed_ = false;
};

struct Simplify : OpRewritePattern<ScanOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ScanOp op, PatternRewriter &rewriter) const override {
    if (op.getBatchFirst())
      return failure(); // once time is first, which is when shapes are known
    return success(Simplification(op, rewriter).run());
  }
};

/// One iteration is no loop: its slices are the inputs, reshaped.
struct InlineSingleIteration : OpRewritePattern<ScanOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ScanOp op, PatternRewriter &rewriter) const override {
    if (op.getTripCount() != 1 || op.getBatchFirst())
      return failure();
    SmallVector<Value> arguments;
    for (Value input : op.getInputs())
      arguments.push_back(
          ReshapeOp::create(rewriter, op.getLoc(), ScanOp::sliceType(input.getType()), input));
    llvm::append_range(arguments, op.getInits());
    llvm::append_range(arguments, op.getCaptures());
    Operation *yield = op.getBlock().getTerminator();
    rewriter.inlineBlockBefore(&op.getBlock(), op, arguments);
    SmallVector<Value> results(yield->getOperands());
    for (auto [index, type] : llvm::enumerate(op.getResultTypes()))
      if (index >= op.getInits().size())
        results[index] = ReshapeOp::create(rewriter, op.getLoc(), type, results[index]);
    rewriter.eraseOp(yield);
    rewriter.replaceOp(op, results);
    return success();
  }
};

} // namespace

void ScanOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<Simplify, InlineSingleIteration>(context);
  addScanMerging(patterns, context);
}

} // namespace gpuc::ir
