//===- StepForward.cpp - All that a step's backward pass may compute again -----===//

#include "passes/recompute/StepForward.h"

#include "passes/Passes.h"
#include "passes/base/Entries.h"
#include "passes/base/Locations.h"
#include "passes/base/WrittenAgain.h"
#include "passes/recompute/LoopChunks.h"
#include "passes/recompute/Recompute.h"

#include "dialects/gpuc/GpucOps.h"

using namespace mlir;

namespace gpuc {

LogicalResult checkGradientsAreKnown(func::FuncOp step) {
  bool known = step.walk([](Operation *op) {
                     return isBackward(op->getLoc()) ? WalkResult::interrupt() : WalkResult::advance();
                   })
                   .wasInterrupted();
  if (known)
    return success();
  return emitError(step.getLoc())
         << "what belongs to gradients is known by locations, and @train_step has none: give text with them "
            "(gpuc-opt --mlir-print-debuginfo, --emit without --no-locations)";
}

StepForward::StepForward(func::FuncOp step) : function_(step) {
  for (unsigned result = 0; result < step.getNumResults(); ++result)
    if (auto name = step.getResultAttrOfType<StringAttr>(result, kNameAttr); name && name == "loss_sum")
      visit(step.getBody().front(), result);
}

void StepForward::visit(Block &block, ArrayRef<unsigned> results) {
  auto losses = llvm::map_to_vector(
      results, [&](unsigned result) { return block.getTerminator()->getOperand(result); });
  const ForwardPass &forward = passes_.emplace_back(block, losses);
  for (Operation *op : forward.ops())
    for (Value value : op->getResults()) {
      numbers_[value] = values_.size();
      values_.push_back(value);
    }
  for (const ForwardPass::Loop &loop : forward.loops())
    visit(cast<ir::ScanOp>(loop.op).getBlock(), loop.results);
}

llvm::BitVector StepForward::normalized(const llvm::BitVector &kept) const {
  llvm::BitVector normal(kept.size(), true);
  SmallVector<Value> open;
  for (const ForwardPass &forward : passes_)
    for (Operation &op : forward.block())
      if (forward.isBackward(&op))
        llvm::append_range(open, op.getOperands());
  while (!open.empty())
    for (Value value : bytesOf(open.pop_back_val())) {
      auto number = numbers_.find(value);
      if (number == numbers_.end() || kept.test(number->second) || !normal.test(number->second))
        continue;
      normal.reset(number->second);
      llvm::append_range(open, value.getDefiningOp()->getOperands());
    }
  return normal;
}

bool StepForward::hasSlices() const {
  func::FuncOp function = function_;
  return function
      .walk([](ir::ScanOp loop) {
        return loop.getParallel() ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

void apply(const StepChoice &choice, func::FuncOp step) {
  if (choice.slicesInTurn)
    step.walk([](ir::ScanOp loop) {
      if (loop.getParallel())
        loop->setAttr(kInTurnAttr, UnitAttr::get(loop.getContext()));
    });
  if (choice.readsFirstWritten) {
    const DenseSet<Value> dropped = StepForward(step).droppedBy(choice.kept);
    auto isDropped = [&](Value value) {
      return llvm::any_of(bytesOf(value), [&](Value bytes) { return dropped.contains(bytes); });
    };
    // Nor is what is kept written by a kernel that waits for something computed again.
    readFirstWritten(step, [&](Value first, Operation *writer) {
      return isDropped(first) || llvm::any_of(writer->getOperands(), isDropped);
    });
  }
  StepForward(step).recompute(choice.kept);
}

DenseSet<Value> StepForward::droppedBy(const llvm::BitVector &kept) const {
  DenseSet<Value> dropped;
  for (auto [number, value] : llvm::enumerate(values_))
    if (!kept.test(number))
      dropped.insert(value);
  return dropped;
}

void StepForward::recompute(const llvm::BitVector &kept) {
  DenseSet<Value> dropped = droppedBy(kept);
  for (const ForwardPass &forward : passes_)
    recomputeInChunks(forward, dropped);
  // Loops may be others by now.
  for (const StepForward step(function_); const ForwardPass &forward : step.passes())
    gpuc::recompute(forward, [&](Value value) { return !dropped.contains(value); });
}

} // namespace gpuc
