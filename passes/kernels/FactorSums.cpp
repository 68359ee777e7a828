//===- FactorSums.cpp - What all terms of a sum have in common ----------------===//
//
// Σ w · xᵢ = w · Σ xᵢ: factors that are the same in all terms are multiplied once, behind the sum. Sums that
// were different before are then often one: the cotangents of a batch norm's weight and bias are, but for
// such factors, the two sums that its operand's cotangent takes. A single number stays within: no sums
// become one by it, and it may be what keeps the terms small, as the inverse of a loss scale does.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/FuseSteps.h"

#include "dialects/gpuc/Expr.h"
#include "passes/codegen/Codegen.h"

#include <map>

namespace gpuc {

using namespace mlir;

namespace {

/// A product's factors: those that differ between the terms of a sum, and those that do not.
struct Factors {
  SmallVector<Value> terms;
  SmallVector<ir::BroadcastOp> common;

  Factors(Value product, ArrayRef<int64_t> folded) { add(product, folded); }

private:
  void add(Value value, ArrayRef<int64_t> folded) {
    if (auto product = value.getDefiningOp<ir::MulOp>(); product && terms.size() + common.size() < most) {
      add(product.getLhs(), folded);
      return add(product.getRhs(), folded);
    }
    auto broadcast = value.getDefiningOp<ir::BroadcastOp>();
    if (broadcast && !broadcast.getDims().empty() &&
        llvm::none_of(broadcast.getDims(), [&](int64_t dim) { return llvm::is_contained(folded, dim); }))
      common.push_back(broadcast);
    else
      terms.push_back(value);
  }

  static constexpr size_t most = 8;
};

class FactoringSums {
public:
  void factor(ir::SumOp sum) {
    auto type = sum.getType();
    if (!type.getElementType().isF32() && !type.getElementType().isF64())
      return;
    Factors factors(sum.getOperand(), sum.getDims());
    if (factors.terms.empty())
      return;
    Value &known = sums_[{keyOf(factors.terms), llvm::to_vector(sum.getDims())}];
    if (factors.common.empty()) {
      if (known)
        sum.getResult().replaceAllUsesWith(known);
      else
        known = sum;
      return;
    }
    OpBuilder builder(sum);
    ir::Expr terms(builder, sum.getLoc(), factors.terms.front());
    if (!known) {
      for (Value term : ArrayRef(factors.terms).drop_front())
        terms = terms * terms.at(term);
      known = ir::sum(terms, sum.getDims());
    }
    ir::Expr total = terms.at(known);
    for (ir::BroadcastOp factor : factors.common)
      total = total * behind(factor, sum.getDims(), total);
    sum.getResult().replaceAllUsesWith(total);
  }

private:
  static SmallVector<void *> keyOf(ArrayRef<Value> terms) {
    return llvm::map_to_vector(terms, [](Value term) { return term.getAsOpaquePointer(); });
  }

  /// The factor beside each element of the sum.
  static ir::Expr behind(ir::BroadcastOp factor, ArrayRef<int64_t> folded, ir::Expr total) {
    SmallVector<int64_t> dims;
    for (int64_t dim : factor.getDims())
      dims.push_back(dim - llvm::count_if(folded, [&](int64_t other) { return other < dim; }));
    ir::Expr operand = total.at(factor.getOperand());
    return operand.shape() == total.shape() ? operand : ir::broadcast(operand, dims, total.shape());
  }

  std::map<std::pair<SmallVector<void *>, SmallVector<int64_t>>, Value> sums_;
};

} // namespace

void factorSums(Block &block) {
  SmallVector<ir::SumOp> sums(block.getOps<ir::SumOp>());
  FactoringSums factoring;
  for (ir::SumOp sum : sums)
    factoring.factor(sum);
  eraseUnreadKernelOps(block);
}

void eraseUnreadKernelOps(Block &block) {
  auto isUnread = [&](Operation *op) {
    return op && op->getBlock() == &block && isKernelOp(op) && op->use_empty();
  };
  llvm::SetVector<Operation *> unread;
  for (Operation &op : block)
    if (isUnread(&op))
      unread.insert(&op);
  while (!unread.empty()) {
    Operation *op = unread.pop_back_val();
    SmallVector<Operation *> makers;
    for (Value operand : op->getOperands())
      makers.push_back(operand.getDefiningOp());
    op->erase();
    for (Operation *maker : makers)
      if (isUnread(maker))
        unread.insert(maker);
  }
}

} // namespace gpuc
