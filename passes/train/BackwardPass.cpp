//===- BackwardPass.cpp - The backward pass of one block ---------------------===//

#include "passes/train/BackwardPass.h"

#include "dialects/gpuc/Tf32.h"
#include "passes/base/Locations.h"
#include "passes/train/ScanDerivative.h"

namespace gpuc {

using namespace mlir;

bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

void BackwardPass::findVaried() {
  for (Operation &op : block_.without_terminator()) {
    if (auto scan = dyn_cast<ir::ScanOp>(op)) {
      for (Value result : variedResults(scan, [&](Value value) { return varies(value); }))
        varied_.insert(result);
      continue;
    }
    auto read = dyn_cast<ir::ReadOp>(op);
    bool varies = (read && variables_.contains(read.getVariable())) ||
                  llvm::any_of(op.getOperands(), [&](Value value) { return varied_.contains(value); });
    for (Value result : op.getResults())
      if (varies && isFloat(result))
        varied_.insert(result);
  }
}

void BackwardPass::seed(Value value, Value cotangent) { accumulate(value.getLoc(), {value}, {cotangent}); }

LogicalResult BackwardPass::run() {
  SmallVector<Operation *> forward;
  for (Operation &op : block_.without_terminator())
    forward.push_back(&op);
  // Seeds may have put ops at the end; nothing varies in them, so that visiting them does nothing.
  Operation *lastForward = forward.empty() ? nullptr : forward.back();
  for (Operation *op : llvm::reverse(forward)) {
    Operation *before = op->getPrevNode();
    bool isLast = op == lastForward;
    if (failed(visit(op)))
      return failure();
    if (isLast) // a scan has been replaced
      lastForward = before ? before->getNextNode() : &block_.front();
  }
  eraseDead(lastForward);
  return success();
}

Value BackwardPass::ofVariable(StringRef variable) {
  if (reads_.empty())
    for (auto read : block_.getOps<ir::ReadOp>())
      reads_[read.getVariable()].push_back(read);
  Value sum;
  for (ir::ReadOp read : reads_[variable])
    if (Value cotangent = cotangents_.lookup(read.getResult()))
      sum = add(read.getLoc(), sum, cotangent);
  return sum;
}

LogicalResult BackwardPass::visit(Operation *op) {
  SmallVector<Value> given =
      llvm::map_to_vector(op->getResults(), [&](Value value) { return cotangents_.lookup(value); });
  if (isa<ir::ReadOp>(op) || llvm::none_of(given, [](Value value) { return value != nullptr; }))
    return success();
  if (auto scan = dyn_cast<ir::ScanOp>(op); scan && scan.getBatchFirst())
    return op->emitOpError("has the batch first: gpuc-specialize-batch comes before its gradient");
  else if (scan)
    return visitScan(scan, given);
  auto differentiable = dyn_cast<ir::DifferentiableOpInterface>(op);
  if (!differentiable)
    return op->emitOpError("stands between the loss and what it is differentiated by, but has no derivative");

  Operation *before = block_.getTerminator()->getPrevNode();
  SmallVector<Value> computed;
  if (failed(differentiable.buildVJP(builder_, given, computed)))
    return op->emitOpError("has no derivative for these operands");
  if (failed(checkVJP(differentiable, given, computed, before)))
    return failure();
  accumulate(op->getLoc(), llvm::to_vector(op->getOperands()), computed);
  return success();
}

LogicalResult BackwardPass::visitScan(ir::ScanOp scan, ArrayRef<Value> given) {
  SmallVector<Value> computed;
  SmallVector<Value> operands(scan->getOperands());
  FailureOr<ir::ScanOp> stacking =
      differentiateScan(scan, builder_, given, [&](Value value) { return varies(value); }, computed);
  if (failed(stacking))
    return failure();
  // The scan is gone: what comes to lie where its results lay is something else.
  for (auto [old, result] : llvm::zip(scan->getResults(), stacking->getResults())) {
    cotangents_.erase(old);
    varied_.erase(old);
  }
  scan.erase();
  accumulate((*stacking)->getLoc(), operands, computed);
  return success();
}

void BackwardPass::accumulate(Location forward, ArrayRef<Value> values, ArrayRef<Value> computed) {
  for (auto [value, cotangent] : llvm::zip_equal(values, computed))
    if (cotangent && varied_.contains(value)) {
      Value &sum = cotangents_[value];
      sum = add(forward, sum, cotangent);
    }
}

/// Checks what a VJP built after `before`, and moves it to the op's place in the backward pass.
LogicalResult BackwardPass::checkVJP(ir::DifferentiableOpInterface op, ArrayRef<Value> given,
                                     ArrayRef<Value> computed, Operation *before) {
  if (computed.size() != op->getNumOperands())
    return op->emitOpError("gives ") << computed.size() << " cotangents for " << op->getNumOperands()
                                     << " operands";
  llvm::SmallDenseSet<Value> readable(given.begin(), given.end());
  readable.insert_range(op.getResiduals());
  for (auto [index, cotangent] : llvm::enumerate(computed)) {
    if (cotangent && cotangent.getType() != op->getOperand(index).getType())
      return op->emitOpError("gives operand ") << index << " of type " << op->getOperand(index).getType()
                                               << " a cotangent of type " << cotangent.getType();
  }
  for (Operation *built = before ? before->getNextNode() : &block_.front(); built != block_.getTerminator();
       built = built->getNextNode()) {
    for (Value operand : built->getOperands())
      if (!readable.contains(operand))
        return op->emitOpError("reads, in its backward op ")
               << built->getName() << ", a value of the forward pass that "
               << "it does not declare as residual, of type " << operand.getType();
    readable.insert_range(built->getResults());
    ir::inheritTf32(op, built);
    built->setLoc(backwardOf(op->getLoc()));
  }
  return success();
}

Value BackwardPass::add(Location forward, Value sum, Value term) {
  return sum ? ir::AddOp::create(builder_, backwardOf(forward), sum.getType(), sum, term).getResult() : term;
}

/// Erases the backward ops, all after `lastForward`, that no argument's and no variable's cotangent needs.
void BackwardPass::eraseDead(Operation *lastForward) {
  llvm::SmallDenseSet<Value> kept;
  for (auto [value, cotangent] : cotangents_)
    if (isa<BlockArgument>(value) || value.getDefiningOp<ir::ReadOp>())
      kept.insert(cotangent);
  for (Operation *op = block_.getTerminator()->getPrevNode(); op != lastForward;) {
    Operation *previous = op->getPrevNode();
    bool needed = llvm::any_of(op->getResults(), [&](Value value) { return kept.contains(value); });
    if (!needed && isOpTriviallyDead(op))
      op->erase();
    op = previous;
  }
}

} // namespace gpuc
