//===- Kept.cpp - What a row is computed once for ----------------------------===//

#include "passes/codegen/host/HostLoops.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/Element.h"
#include "passes/codegen/Pointwise.h"
#include "passes/target/TargetDescription.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {
namespace {

/// Walks what each sweep computes, in the order of the sweeps.
class Keeping {
public:
  explicit Keeping(const Kernel &kernel) : kernel_(kernel), kept_(kernel.sweeps.size()) {}

  SmallVector<SmallVector<Value, 1>> run() {
    const size_t sweeps = kernel_.sweeps.size(), writes = sweeps - (kernel_.rowsInLastSweep.empty() ? 0 : 1);
    for (size_t sweep = 0; sweep <= writes; ++sweep) {
      roots_.clear();
      if (sweep < sweeps)
        for (Operation *reduction : kernel_.sweeps[sweep])
          roots_.insert(reduction->getOperand(0));
      if (sweep == writes)
        for (unsigned result : kernel_.resultNumbers(/*wholeRows=*/true))
          roots_.insert(kernel_.yields()[result]);
      walk(sweep);
    }
    return std::move(kept_);
  }

private:
  void walk(size_t sweep) {
    collect();
    for (Value value : llvm::to_vector(needed_))
      if (isCostly(value.getDefiningOp()) && computedIn_.contains(value))
        keep(lastAlone(value));
    collect();
    for (Value value : needed_)
      computedIn_.try_emplace(value, sweep);
  }

  /// What a sweep computes, down to what is read.
  void collect() {
    needed_.clear();
    llvm::for_each(roots_, [&](Value root) { visit(root); });
  }
  void visit(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || shapeOf(value) != ArrayRef(kernel_.extents) || !(isPointwise(op) || isa<RandomBitsOp>(op)))
      return; // of the whole row, a load, or at another index
    if (isKept_.contains(value) || !needed_.insert(value))
      return;
    if (isPointwise(op))
      llvm::for_each(op->getOperands(), [&](Value operand) { visit(operand); });
  }

  /// The last of what was computed before and needs `value`, or what needs it, for nothing else: a gradient
  /// behind gelu instead of the erf and the exp that it is made of.
  Value lastAlone(Value value) const {
    while (Value user = onlyUser(value)) {
      if (!computedIn_.contains(user) || bytesInRow(user) > bytesInRow(value))
        break;
      value = user;
    }
    return value;
  }
  Value onlyUser(Value value) const {
    Value only;
    for (Operation *user : value.getUsers())
      for (Value result : user->getResults())
        if (needed_.contains(result)) {
          if (only && only != result)
            return {};
          only = result;
        }
    return roots_.contains(value) ? Value() : only;
  }

  void keep(Value value) {
    if (isKept_.contains(value) || bytesInRow(value) > left_)
      return;
    left_ -= bytesInRow(value);
    isKept_.insert(value);
    kept_[computedIn_.lookup(value)].push_back(value);
  }

  int64_t bytesInRow(Value value) const {
    return kernel_.rowLength() * bytesOf(elementKind(value.getType()));
  }
  static bool isCostly(Operation *op) { return picosecondsPerElement(*op) >= 600; }

  const Kernel &kernel_;
  SmallVector<SmallVector<Value, 1>> kept_;
  llvm::SetVector<Value> roots_, needed_; ///< Of the sweep.
  llvm::DenseMap<Value, size_t> computedIn_;
  llvm::DenseSet<Value> isKept_;
  int64_t left_ = kHostDescription.keptBytes;
};

} // namespace

SmallVector<SmallVector<Value, 1>> keptValues(const Kernel &kernel) {
  bool liesAlongLanes = !kernel.groups.empty() && kernel.groups.back().role == Role::Ordered;
  return liesAlongLanes ? Keeping(kernel).run() : SmallVector<SmallVector<Value, 1>>(kernel.sweeps.size());
}

} // namespace gpuc::codegen
