//===- LoopChunks.cpp - What loops compute again, chunk by chunk -------===//

#include "passes/recompute/LoopChunks.h"

#include "passes/Passes.h"

#include "dialects/gpuc/ScanParts.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"

#include <deque>

using namespace mlir;

namespace gpuc {

namespace {

/// Puts a loop of these parts in the place of the one that there was, in `values` too.
ir::ScanOp rebuild(ir::ScanParts &parts, IRRewriter &rewriter, DenseSet<Value> &values) {
  llvm::BitVector known(parts.scan.getNumResults());
  for (OpResult result : parts.scan.getResults())
    known[result.getResultNumber()] = values.erase(result);
  auto isKnown = [&](Value result) { return result && known[cast<OpResult>(result).getResultNumber()]; };
  SmallVector<bool> stay;
  for (const ir::ScanParts::Carry &carry : parts.carries)
    stay.push_back(isKnown(carry.result));
  for (const ir::ScanParts::Output &output : parts.outputs)
    stay.push_back(isKnown(output.result));
  ir::ScanOp built = parts.rebuild(rewriter);
  for (auto [stays, result] : llvm::zip_equal(stay, built.getResults()))
    if (stays)
      values.insert(result);
  return built;
}

/// Of a loop, and of those in its region: what nobody reads is not stacked, nor computed.
void dropUnread(ir::ScanOp loop, IRRewriter &rewriter, DenseSet<Value> &values) {
  ir::ScanParts parts(loop);
  llvm::erase_if(parts.outputs,
                 [](const ir::ScanParts::Output &output) { return output.result.use_empty(); });
  if (parts.outputs.size() != loop.getOutputs().size())
    loop = rebuild(parts, rewriter, values);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(loop.getBlock())))
    if (isOpTriviallyDead(&op))
      rewriter.eraseOp(&op);
    else if (auto inner = dyn_cast<ir::ScanOp>(op))
      dropUnread(inner, rewriter, values);
}

/// Puts into a backward loop what computes the slices of stacks of a forward one.
class Chunk {
public:
  Chunk(ir::ScanParts &forward, ir::ScanOp backward, IRRewriter &rewriter)
      : forward_(forward), backward_(backward), rewriter_(rewriter) {}

  void computeAgain(ArrayRef<ir::ScanParts::Output> stacks) {
    rewriter_.setInsertionPointToStart(&backward_.block());
    for (const ir::ScanParts::Output &stack : stacks) {
      auto input = llvm::find_if(backward_.inputs, [&](const ir::ScanParts::Argument &argument) {
        return argument.outer == stack.result;
      });
      if (input == backward_.inputs.end())
        continue;
      Value slice = input->inner;
      backward_.inputs.erase(input);
      backward_.replace(rewriter_, slice, again(stack.slice));
    }
  }

  /// `forward` is the forward loop, which has the outputs by now that were added to it.
  ir::ScanOp rebuild(ir::ScanOp forward) {
    DenseMap<Value, Value> anew; // what the forward loop gave → what it gives
    for (auto [carry, result] : llvm::zip_equal(forward_.carries, forward.getFinals()))
      anew[carry.result] = result;
    for (auto [output, result] : llvm::zip_equal(forward_.outputs, forward.getOutputs()))
      anew[output.result] = result;
    auto update = [&](Value &outer) {
      if (auto known = anew.find(outer); known != anew.end())
        outer = known->second;
    };
    for (auto *arguments : {&backward_.inputs, &backward_.captures})
      for (ir::ScanParts::Argument &argument : *arguments)
        update(argument.outer);
    for (ir::ScanParts::Carry &carry : backward_.carries)
      update(carry.init);
    for (auto [inner, output] : carried_)
      backward_.inputs.push_back({forward.getOutputs()[output], inner});
    return backward_.rebuild(rewriter_);
  }

private:
  /// A value of the forward region in the backward one.
  Value again(Value value) {
    if (Value known = mapping_.lookupOrNull(value))
      return known;
    if (Operation *op = value.getDefiningOp())
      copy(op);
    else
      mapping_.map(value, argumentFor(value));
    return mapping_.lookup(value);
  }

  void copy(Operation *op) {
    for (Value operand : op->getOperands())
      again(operand);
    rewriter_.clone(*op, mapping_)->setAttr(kRecomputedAttr, rewriter_.getUnitAttr());
  }

  Value argumentFor(Value value) {
    if (Value argument = backward_.addArgumentOf(forward_, value))
      return argument;
    // What is carried into each chunk: few bytes, kept for all of them.
    Value slice = backward_.block().addArgument(value.getType(), value.getLoc());
    carried_.push_back({slice, forward_.addOutput(value)});
    return slice;
  }

  ir::ScanParts &forward_;
  ir::ScanParts backward_;
  IRRewriter &rewriter_;
  IRMapping mapping_; // forward region → backward region
  SmallVector<std::pair<Value, size_t>>
      carried_; // argument of the backward region, output of the forward loop
};

void recomputeInChunks(ir::ScanOp loop, ArrayRef<Value> stacks, DenseSet<Value> &dropped) {
  IRRewriter rewriter(loop.getContext());
  ir::ScanParts parts(loop);
  SmallVector<ir::ScanParts::Output> again;
  llvm::SetVector<Operation *> readers;
  for (const ir::ScanParts::Output &output : parts.outputs)
    if (llvm::is_contained(stacks, output.result)) {
      again.push_back(output);
      readers.insert_range(output.result.getUsers());
    }
  std::deque<Chunk> chunks;
  for (Operation *reader : readers)
    chunks.emplace_back(parts, cast<ir::ScanOp>(reader), rewriter).computeAgain(again);
  loop = rebuild(parts, rewriter, dropped);
  for (Chunk &chunk : chunks)
    dropUnread(chunk.rebuild(loop), rewriter, dropped);
  dropUnread(loop, rewriter, dropped);
}

} // namespace

void recomputeInChunks(const ForwardPass &forward, DenseSet<Value> &dropped) {
  llvm::MapVector<Operation *, SmallVector<Value>> stacks; // of each loop, in the block's order
  for (Operation *op : forward.ops())
    for (Value result : op->getResults())
      if (dropped.contains(result) && forward.isOfChunks(result))
        stacks[op].push_back(result);
  for (auto &[loop, ofLoop] : stacks)
    recomputeInChunks(cast<ir::ScanOp>(loop), ofLoop, dropped);
}

} // namespace gpuc
