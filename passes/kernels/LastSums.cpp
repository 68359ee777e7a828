//===- LastSums.cpp - Which sum over ranks an op waits for at last -----------===//

#include "passes/kernels/LastSums.h"

#include "dialects/gpuc/GpucOps.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace gpuc {
namespace {

bool isSumOverRanks(Operation *op) {
  return isa<ir::AllReduceOp, ir::ReduceScatterOp, ir::ReduceToOwnersOp>(op);
}

/// Calls `visit` for each op of the block that makes what `op`, or an op in it, reads.
template <typename Visit> void forEachMaker(Block &block, Operation &op, Visit visit) {
  op.walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && maker->getBlock() == &block)
        visit(maker);
  });
}

/// Of which other sums over ranks are made.
llvm::DenseSet<Operation *> findWhatLeadsToSums(Block &block) {
  llvm::DenseSet<Operation *> leads;
  for (Operation &op : llvm::reverse(block))
    if (isSumOverRanks(&op) || leads.contains(&op))
      forEachMaker(block, op, [&](Operation *maker) { leads.insert(maker); });
  return leads;
}

} // namespace

LastSums::LastSums(Block &block) {
  if (llvm::none_of(block, [](Operation &op) { return isSumOverRanks(&op); }))
    return;
  const llvm::DenseSet<Operation *> leads = findWhatLeadsToSums(block);
  for (auto [place, op] : llvm::enumerate(block)) {
    unsigned last = 0;
    forEachMaker(block, op, [&](Operation *maker) { last = std::max(last, of(maker)); });
    if (isSumOverRanks(&op) && !leads.contains(&op))
      last = static_cast<unsigned>(place) + 1;
    if (last > 0)
      last_[&op] = last;
  }
}

} // namespace gpuc
