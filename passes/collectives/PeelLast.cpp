//===- PeelLast.cpp - The last iteration, outside of its loop --------------------===//
//
//   plan.repeat 4 {                            plan.repeat 3 {
//     %x = plan.view %xs[0] strides [64]         …
//     plan.launch @gradient(%x, %g) -> (%g)    }
//   }                                          %x = plan.view %xs[192]
//   plan.all_reduce %g -> %sum : f32           plan.launch @gradient(%x, %g) -> (%g)
//                                              plan.all_reduce %g -> %sum : f32
//
//===----------------------------------------------------------------------===//

#include "passes/collectives/PeelLast.h"

#include "passes/plan/Lifetimes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace gpuc {
namespace {

class LastIteration {
public:
  LastIteration(plan::RepeatOp repeat, const DenseMap<Operation *, Block *> &scopes)
      : repeat_(repeat), last_(static_cast<int64_t>(repeat.getCount()) - 1), builder_(repeat) {
    builder_.setInsertionPointAfter(repeat);
    for (auto &[buffer, scope] : scopes)
      if (repeat->isAncestor(scope->getParentOp()))
        own_.insert(buffer);
  }

  void peel() {
    clone(repeat_.getBody().front());
    repeat_.setCount(last_);
  }

private:
  void clone(Block &block) {
    for (Operation &op : block)
      if (auto view = dyn_cast<plan::ViewOp>(op))
        there_.map(view.getBuffer(), viewThere(view));
      else
        clone(&op);
  }

  void clone(Operation *command) {
    Operation *clone = command->cloneWithoutRegions();
    for (OpOperand &operand : clone->getOpOperands())
      operand.set(valueThere(operand.get()));
    builder_.insert(clone);
    for (auto [from, to] : llvm::zip_equal(command->getRegions(), clone->getRegions())) {
      OpBuilder::InsertionGuard guard(builder_);
      builder_.setInsertionPointToEnd(&to.emplaceBlock());
      this->clone(from.front());
    }
  }

  /// What a value of an iteration is in the last one: views stand still there, and what lives in an iteration
  /// is a buffer of its own.
  Value valueThere(Value value) {
    if (Value known = there_.lookupOrNull(value))
      return known;
    Value found = value;
    if (auto view = value.getDefiningOp<plan::ViewOp>()) {
      OpBuilder::InsertionGuard guard(builder_); // it stands before all loops
      builder_.setInsertionPoint(repeat_);
      found = viewThere(view);
    } else if (Operation *buffer = value.getDefiningOp(); own_.contains(buffer)) {
      found = OpBuilder(buffer).clone(*buffer)->getResult(0);
    }
    there_.map(value, found);
    return found;
  }

  Value viewThere(plan::ViewOp view) {
    Value source = valueThere(view.getSource());
    ArrayRef<int64_t> strides = view.getStrides();
    const int64_t moved = strides.empty() ? 0 : strides.front() * last_;
    const int64_t offset = static_cast<int64_t>(view.getOffset()) + moved;
    return plan::ViewOp::create(builder_, view.getLoc(), view.getBuffer().getType(), source, offset,
                                view.getType(), strides.empty() ? strides : strides.drop_front());
  }

  plan::RepeatOp repeat_;
  int64_t last_;
  OpBuilder builder_; ///< Behind the loop.
  DenseSet<Operation *> own_;
  IRMapping there_;
};

/// Whether it writes what is summed over ranks.
bool leavesParts(plan::RepeatOp repeat, const DenseSet<Operation *> &parts) {
  return repeat.getCount() > 1 &&
         llvm::any_of(cast<plan::CommandOpInterface>(*repeat).getWrites(),
                      [&](Value value) { return parts.contains(plan::bufferOf(value)); });
}

} // namespace

bool peelLastIterations(plan::ProgramOp program) {
  DenseSet<Operation *> parts;
  for (auto collective : program.getBody().getOps<plan::CollectiveOpInterface>())
    for (Value part : cast<plan::CommandOpInterface>(*collective).getReads())
      parts.insert(plan::bufferOf(part));
  const DenseMap<Operation *, Block *> scopes = iterationScopes(program);
  bool peeled = false;
  for (auto repeat : llvm::make_early_inc_range(program.getBody().getOps<plan::RepeatOp>()))
    if (leavesParts(repeat, parts)) {
      LastIteration(repeat, scopes).peel();
      peeled = true;
    }
  return peeled;
}

} // namespace gpuc
