//===- Kept.cpp - What a row is computed once for ----------------------------===//

#include "passes/codegen/host/HostLoops.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/codegen/Element.h"
#include "passes/codegen/Pointwise.h"
#include "passes/target/TargetDescription.h"

using namespace mlir;
using namespace gpuc::ir;

namespace gpuc::codegen {
namespace {

/// Walks what each sweep computes, in the order of the sweeps.
class Keeping {
public:
  explicit Keeping(const Kernel &kernel) : kernel_(kernel), kept_(kernel.sweeps.size()) {}

  SmallVector<SmallVector<Value, 1>> run() {
    for (; sweep_ < kernel_.sweeps.size(); ++sweep_)
      for (Operation *reduction : kernel_.sweeps[sweep_])
        visit(reduction->getOperand(0));
    if (!kernel_.rowsInLastSweep.empty())
      --sweep_; // in which they are written
    for (unsigned result : kernel_.resultNumbers(/*wholeRows=*/true))
      visit(kernel_.yields()[result]);
    return std::move(kept_);
  }

private:
  void visit(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || shapeOf(value) != ArrayRef(kernel_.extents) || !(isPointwise(op) || isa<RandomBitsOp>(op)))
      return; // of the whole row, a load, or at another index
    auto [known, isNew] = computedIn_.try_emplace(value, sweep_);
    if (!isNew && known->second == sweep_)
      return;
    if (!isNew && keep(value, known->second))
      return;
    if (isPointwise(op))
      llvm::for_each(op->getOperands(), [&](Value operand) { visit(operand); });
  }

  /// Whether `value` is, now or since before, kept from the sweep that computes it.
  bool keep(Value value, size_t from) {
    if (llvm::is_contained(kept_[from], value))
      return true;
    int64_t bytes = kernel_.rowLength() * bytesOf(elementKind(value.getType()));
    if (!isCostly(value.getDefiningOp()) || bytes > left_)
      return false;
    left_ -= bytes;
    kept_[from].push_back(value);
    return true;
  }

  static bool isCostly(Operation *op) { return picosecondsPerElement(*op) >= 600; }

  const Kernel &kernel_;
  SmallVector<SmallVector<Value, 1>> kept_;
  llvm::DenseMap<Value, size_t> computedIn_;
  size_t sweep_ = 0;
  int64_t left_ = kHostDescription.keptBytes;
};

} // namespace

SmallVector<SmallVector<Value, 1>> keptValues(const Kernel &kernel) {
  bool liesAlongLanes = !kernel.groups.empty() && kernel.groups.back().role == Role::Ordered;
  return liesAlongLanes ? Keeping(kernel).run() : SmallVector<SmallVector<Value, 1>>(kernel.sweeps.size());
}

} // namespace gpuc::codegen
