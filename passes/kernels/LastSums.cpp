//===- LastSums.cpp - Which sum over ranks, or product, an op waits for at last ===//

#include "passes/kernels/LastSums.h"

#include "dialects/gpuc/GpucOps.h"
#include "passes/base/AttentionViews.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace gpuc {
namespace {

bool isSumOverRanks(Operation *op) {
  return isa<ir::AllReduceOp, ir::ReduceScatterOp, ir::ReduceToOwnersOp>(op);
}

/// A product, by itself or with its epilogue, attention, or a loop.
bool isOfProducts(Operation *op) {
  if (auto fused = dyn_cast<ir::FusedOp>(op))
    return !fused.getOps<ir::ProductOpInterface>().empty();
  return isa<ir::ProductOpInterface, ir::ScanOp>(op) || isAttention(op);
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

/// Of each op the place, from 1, of the last op with `counts` that it is or depends on.
llvm::DenseMap<Operation *, unsigned> findLast(Block &block, llvm::function_ref<bool(Operation *)> counts) {
  llvm::DenseMap<Operation *, unsigned> places;
  for (auto [place, op] : llvm::enumerate(block)) {
    unsigned last = 0;
    forEachMaker(block, op, [&](Operation *maker) { last = std::max(last, places.lookup(maker)); });
    if (counts(&op))
      last = static_cast<unsigned>(place) + 1;
    if (last > 0)
      places[&op] = last;
  }
  return places;
}

} // namespace

LastSums::LastSums(Block &block) {
  if (llvm::none_of(block, [](Operation &op) { return isSumOverRanks(&op); }))
    return;
  const llvm::DenseSet<Operation *> leads = findWhatLeadsToSums(block);
  last_ = findLast(block, [&](Operation *op) { return isSumOverRanks(op) && !leads.contains(op); });
}

LastProducts::LastProducts(Block &block) : last_(findLast(block, isOfProducts)) {}

} // namespace gpuc
