//===- ForwardPass.cpp - What of a step comes before its gradients -----------===//

#include "passes/recompute/ForwardPass.h"

#include "passes/base/Locations.h"
#include "passes/base/TensorSizes.h"
#include "passes/kernels/CommandForms.h"

#include "dialects/gpuc/GpucOps.h"

using namespace mlir;

namespace gpuc {

bool becomesCommand(Operation *op) {
  std::optional<CommandForm> form = commandFormOf(op);
  return form && *form != CommandForm::none;
}

SmallVector<Value, 1> bytesOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  if (becomesCommand(op))
    return {value};
  SmallVector<Value, 1> values;
  for (Value operand : op->getOperands())
    values.append(bytesOf(operand));
  return values;
}

/// Whether gradients are computed in the op's region, be it in a loop within.
static bool holdsGradients(Operation *op) {
  auto scan = dyn_cast<ir::ScanOp>(op);
  return scan && !isBackward(scan.getLoc()) && llvm::any_of(scan.getBlock(), [](Operation &inner) {
           return isBackward(inner.getLoc()) || holdsGradients(&inner);
         });
}

ForwardPass::ForwardPass(Block &block, ArrayRef<Value> losses) : block_(block) {
  findNeeded(losses);
  findBackward();
  for (Operation &op : block) {
    // Ranks do not exchange anything twice.
    if (!needed_.contains(&op) || !becomesCommand(&op) || commandFormOf(&op) == CommandForm::collective)
      continue;
    if (holdsGradients(&op))
      loops_.push_back({&op, needed_.lookup(&op)});
    else if (!isBackward(&op))
      ops_.push_back(&op);
  }
  findReaders();
}

void ForwardPass::findNeeded(ArrayRef<Value> losses) {
  SmallVector<Value> open(losses);
  while (!open.empty()) {
    auto result = dyn_cast<OpResult>(open.pop_back_val());
    if (!result || result.getOwner()->getBlock() != &block_)
      continue;
    auto [op, isNew] = needed_.try_emplace(result.getOwner());
    if (!llvm::is_contained(op->second, result.getResultNumber()))
      op->second.push_back(result.getResultNumber());
    if (isNew)
      llvm::append_range(open, result.getOwner()->getOperands());
  }
}

/// What the loss needs is forward, even if it is a gradient itself (a penalty on one). Behind a loop that
/// holds gradients only what its losses become is.
void ForwardPass::findBackward() {
  for (Operation &op : block_) {
    if (op.getNumResults() == 0)
      continue; // what the block gives, and assigns, it does so of both
    bool depends = llvm::any_of(op.getOperands(), [&](Value operand) {
      Operation *before = operand.getDefiningOp();
      return before && (backward_.contains(before) || holdsGradients(before));
    });
    if (depends || (gpuc::isBackward(op.getLoc()) && !needed_.contains(&op)))
      backward_.insert(&op);
  }
}

void ForwardPass::findReaders() {
  for (Operation *op : ops_)
    for (Value result : op->getResults())
      readers_[result];
  DenseMap<Operation *, int64_t> numbers;
  for (auto [number, op] : llvm::enumerate(ops_))
    numbers[op] = number;
  for (Operation &op : block_)
    for (Value operand : op.getOperands())
      for (Value read : bytesOf(operand))
        if (auto found = readers_.find(read); found != readers_.end() && becomesCommand(&op)) {
          found->second.backward |= isBackward(&op);
          if (auto number = numbers.find(&op); number != numbers.end())
            found->second.lastForward = std::max(found->second.lastForward, number->second);
        }
}

std::vector<Operation *> ForwardPass::earlyReaders(llvm::function_ref<bool(Value)> isDropped) const {
  std::vector<Operation *> early;
  DenseSet<Operation *> known;
  for (Operation &op : block_) {
    if (ops_.empty() || &op == ops_.back())
      break;
    auto isWaitedFor = [&](Value operand) {
      return isDropped(operand) || known.contains(operand.getDefiningOp());
    };
    if (isBackward(&op) && llvm::any_of(op.getOperands(), isWaitedFor)) {
      known.insert(&op);
      early.push_back(&op);
    }
  }
  return early;
}

Operation *firstReader(Operation *op) {
  Operation *first = nullptr;
  for (Operation *user :
       op->getUsers()) // One is compared with no other: where ops move, that numbers all anew.
    if (Operation *reader = op->getBlock()->findAncestorOpInBlock(*user);
        !first || reader->isBeforeInBlock(first))
      first = reader;
  return first ? first : op->getBlock()->getTerminator();
}

bool ForwardPass::isOfChunks(Value value) const {
  auto loop = value.getDefiningOp<ir::ScanOp>();
  if (!loop || !loop.getChunked() || !computes(value) || value.use_empty() ||
      !llvm::is_contained(loop.getOutputs(), value))
    return false;
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    auto reader = dyn_cast<ir::ScanOp>(use.getOwner());
    return reader && isBackward(reader) && use.getOperandNumber() < reader.getInputs().size();
  });
}

int64_t ForwardPass::residualBytes(Operation *op) const {
  int64_t bytes = 0;
  for (Value result : op->getResults())
    if (readersOf(result).backward && !isOfChunks(result))
      bytes += ir::sizeInBytes(result.getType());
  return bytes;
}

} // namespace gpuc
