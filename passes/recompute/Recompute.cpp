//===- Recompute.cpp - Values that are computed again, not kept --------------===//

#include "passes/recompute/Recompute.h"

#include "passes/Passes.h"

#include "dialects/gpuc/GpucOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <map>

using namespace mlir;

namespace gpuc {
namespace {

class Recomputing {
public:
  Recomputing(const ForwardPass &forward, llvm::function_ref<bool(Value)> keeps)
      : forward_(forward), keeps_(keeps) {}

  /// Whether the value, or one whose bytes it names, is not kept.
  bool isDropped(Value value) const {
    return llvm::any_of(bytesOf(value),
                        [&](Value bytes) { return forward_.computes(bytes) && !keeps_(bytes); });
  }

  /// The copy of a dropped value: there already, or made in front of `reader`.
  Value again(Value value, Operation *reader) {
    auto result = cast<OpResult>(value);
    Operation *&copy = copies_[result.getOwner()];
    if (!copy)
      copy = copyOf(result.getOwner(), reader);
    return copy->getResult(result.getResultNumber());
  }

  int64_t copied() const { return copied_; }

private:
  Operation *copyOf(Operation *op, Operation *reader) {
    IRMapping operands;
    for (Value operand : op->getOperands())
      if (isDropped(operand))
        operands.map(operand, again(operand, reader));
    OpBuilder builder(reader);
    Operation *copy = builder.clone(*op, operands);
    if (forward_.computes(op->getResult(0))) {
      copy->setAttr(kRecomputedAttr, builder.getUnitAttr());
      ++copied_;
    }
    return copy;
  }

  const ForwardPass &forward_;
  llvm::function_ref<bool(Value)> keeps_;
  std::map<Operation *, Operation *> copies_;
  int64_t copied_ = 0;
};

/// The arguments of the kernel on which results hang that somebody reads.
DenseSet<Value> argumentsRead(ir::FusedOp kernel) {
  DenseSet<Value> reached;
  SmallVector<Value> open;
  for (auto [result, yield] :
       llvm::zip_equal(kernel.getResults(), kernel.getBody().front().getTerminator()->getOperands()))
    if (!result.use_empty())
      open.push_back(yield);
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (Operation *op = value.getDefiningOp(); reached.insert(value).second && op)
      llvm::append_range(open, op->getOperands());
  }
  return reached;
}

/// The values that variables get in the block, by their names.
llvm::StringMap<Value> assignedIn(Block &block) {
  llvm::StringMap<Value> assigned;
  for (auto assign : block.getOps<ir::AssignOp>())
    assigned[assign.getVariable()] = assign.getValue();
  return assigned;
}

/// A kernel that also updates a variable (a running mean) needs the old value for that alone, and of its copy
/// nobody reads the update. The copy takes the new value instead, so that the update may go on in place. What
/// no op of the kernel uses is not for the update: the code of attention draws by the step that it is given
/// so.
void readNewValues(ir::FusedOp copy, const llvm::StringMap<Value> &assigned) {
  const DenseSet<Value> read = argumentsRead(copy);
  for (auto [operand, argument] : llvm::zip_equal(copy->getOpOperands(), copy.getBody().getArguments()))
    if (auto old = operand.get().getDefiningOp<ir::ReadOp>();
        old && !argument.use_empty() && !read.contains(argument))
      if (Value value = assigned.lookup(old.getVariable());
          value && value.getDefiningOp()->isBeforeInBlock(copy))
        operand.set(value);
}

} // namespace

int64_t recompute(const ForwardPass &forward, llvm::function_ref<bool(Value)> keeps) {
  Recomputing recomputing(forward, keeps);
  // What a gradient makes of forward values alone may stand right behind them: what it reads would be
  // computed again there, and kept all the same.
  const std::vector<Operation *> early =
      forward.earlyReaders([&](Value value) { return recomputing.isDropped(value); });
  for (Operation *op : llvm::reverse(early))
    op->moveBefore(firstReader(op));
  for (Operation &op : forward.block())
    if (forward.isBackward(&op))
      for (OpOperand &operand : op.getOpOperands())
        if (recomputing.isDropped(operand.get()))
          operand.set(recomputing.again(operand.get(), &op));
  const llvm::StringMap<Value> assigned = assignedIn(forward.block());
  for (ir::FusedOp copy : forward.block().getOps<ir::FusedOp>())
    if (copy->hasAttr(kRecomputedAttr))
      readNewValues(copy, assigned);
  // What gave other names to dropped bytes, for the backward pass alone.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(forward.block())))
    if (isOpTriviallyDead(&op))
      op.erase();
  return recomputing.copied();
}

} // namespace gpuc
