//===- CancelTransposes.cpp - Elements in the order that they come in -------===//
//
// A norm over the channels of pictures is written as a transpose, a norm over the innermost dimension, and a
// transpose back; a loss of pictures' classes as a transpose and sums over the innermost dimension. What is
// computed element by element of what is transposed, and is then summed up or transposed back, is the same in
// either order, so it is computed in the first, and sums of it are taken in the order in which it then lies:
// of what is read across, each number takes a cache line.
//
//===----------------------------------------------------------------------===//

#include "dialects/gpuc/Windows.h"
#include "passes/codegen/Codegen.h"
#include "passes/layout/LayoutSteps.h"
#include "passes/layout/conv/Channels.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;

namespace gpuc {
namespace {

using Permutation = SmallVector<int64_t>;

/// The elementwise ops of a block between transposes and sums or inverse transposes.
class Cancelling {
public:
  explicit Cancelling(Block &block) : block_(block), builder_(block.getParentOp()) {}

  void run() {
    for (Operation &op : block_)
      if (isElementwise(&op) && llvm::all_of(op.getOperands(), [&](Value value) { return isAnew(value); }))
        anew_.insert(&op);
      else if (Permutation order = orderOfOperands(&op); !order.empty())
        between_[&op] = order;
    while (leaveOut()) {
    }
    for (auto &[op, order] : between_)
      rebuild(op, order);
    for (auto &[op, order] : llvm::reverse(between_))
      op->erase();
  }

private:
  static bool isElementwise(Operation *op) {
    return op->hasTrait<ir::Pointwise>() && op->getNumResults() == 1;
  }

  /// Whether the value costs as little in one order as in another, or is computed of such alone: where a
  /// label is the class, of an index and a broadcast.
  bool isAnew(Value value) const { return isMadeAnew(value) || anew_.contains(value.getDefiningOp()); }

  /// How the value's dimensions stand to those in which it could be computed; empty where that is as it is.
  Permutation orderOf(Value value) {
    Operation *op = value.getDefiningOp();
    if (auto transpose = dyn_cast_or_null<ir::TransposeOp>(op)) {
      const bool isBack = between_.contains(transpose.getOperand().getDefiningOp());
      return isBack ? Permutation() : Permutation(transpose.getPermutation());
    }
    return between_.lookup(op);
  }

  /// The one order of all that an elementwise op reads.
  Permutation orderOfOperands(Operation *op) {
    if (!isElementwise(op))
      return {};
    Permutation common;
    for (Value operand : op->getOperands()) {
      if (isAnew(operand))
        continue;
      Permutation order = orderOf(operand);
      if (order.empty() || (!common.empty() && common != order))
        return {};
      common = std::move(order);
    }
    return common;
  }

  bool isInverse(Operation *op, const Permutation &order) const {
    auto transpose = dyn_cast<ir::TransposeOp>(op);
    return transpose && transpose.getPermutation() == ArrayRef(invertPermutationVector(order));
  }

  /// Whether nothing but sums, inverse transposes and others between them read the op.
  bool isBetween(Operation *op) {
    const Permutation order = orderOfOperands(op);
    return !order.empty() && llvm::all_of(op->getUsers(), [&](Operation *user) {
      return between_.contains(user) || isInverse(user, order) ||
             (isReduction(user) && user->getBlock() == &block_);
    });
  }

  /// Takes out what is not between; whether there was any.
  bool leaveOut() {
    DenseSet<Operation *> outside;
    for (auto &[op, order] : between_)
      if (!isBetween(op))
        outside.insert(op);
    between_.remove_if([&](auto &entry) { return outside.contains(entry.first); });
    return !outside.empty();
  }

  void rebuild(Operation *op, const Permutation &order) {
    const Permutation back = invertPermutationVector(order);
    IRMapping mapping;
    for (Value operand : op->getOperands()) {
      builder_.setInsertionPoint(op);
      mapping.map(operand, before(operand, back));
    }
    builder_.setInsertionPoint(op);
    Operation *made = builder_.clone(*op, mapping);
    Value result = op->getResult(0), anew = made->getResult(0);
    anew.setType(ir::permuted(ir::tensorType(result), back));
    made_[result] = anew;
    foldBefore(result, anew, back);
    for (Operation *user : llvm::make_early_inc_range(result.getUsers()))
      if (isInverse(user, order))
        replace(user, anew);
  }

  /// Has reductions of the value read it as it is before it is transposed: that has dimension back[i] as its
  /// i-th.
  void foldBefore(Value value, Value before, ArrayRef<int64_t> back) {
    for (Operation *user : llvm::make_early_inc_range(value.getUsers()))
      if (isReduction(user) && user->getBlock() == &block_) {
        builder_.setInsertionPoint(user);
        replace(user, foldPermuted(builder_, user, before, back));
      }
  }

  /// A value of which isAnew() holds in that order, once for all that read it.
  Value computedAnew(Value value, ArrayRef<int64_t> back) {
    if (isMadeAnew(value))
      return madeAnew(builder_, value, back);
    const std::pair key(value.getAsOpaquePointer(), Permutation(back));
    if (auto found = computedAnew_.find(key); found != computedAnew_.end())
      return found->second;
    IRMapping mapping;
    for (Value operand : value.getDefiningOp()->getOperands())
      mapping.map(operand, computedAnew(operand, back));
    Value anew = builder_.clone(*value.getDefiningOp(), mapping)->getResult(0);
    anew.setType(ir::permuted(ir::tensorType(value), back));
    return computedAnew_[key] = anew;
  }

  static void replace(Operation *op, Value result) {
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }

  /// The operand of an op between in the order that it comes in.
  Value before(Value operand, ArrayRef<int64_t> back) {
    if (Value anew = made_.lookup(operand))
      return anew;
    if (isAnew(operand))
      return computedAnew(operand, back);
    Value untransposed = operand.getDefiningOp<ir::TransposeOp>().getOperand();
    foldBefore(operand, untransposed, back);
    return untransposed;
  }

  Block &block_;
  OpBuilder builder_;
  llvm::MapVector<Operation *, Permutation> between_; ///< In the order of the block.
  DenseSet<Operation *> anew_;                        ///< Computed of what isMadeAnew() alone.
  DenseMap<Value, Value> made_;
  std::map<std::pair<const void *, Permutation>, Value> computedAnew_; ///< By value and order.
};

} // namespace

void cancelTransposes(Block &block) { Cancelling(block).run(); }

} // namespace gpuc
