//===- SliceBatch.cpp - A batch in slices, side by side -----------------------===//
//
// Contract: where the recipe's loss is a recurrent network's, adds a copy of it over a part of the batch's
// rows, with the attribute `gpuc.partition`, which says how many of them make the batch. The gradients are
// taken of that copy, and gpuc-expand-recipe adds up those of all slices. Calls in the copy are inlined.
//
// A loop over time does little work in each command, and threads that share each of them spend their time
// waiting for one another. A slice goes through all of the step without the others. What that costs, a sum
// for each weight, is little where weights are small. How many slices there are depends on the model alone,
// not on the machine: the same plan gives the same bits with any number of threads.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/Inline.h"
#include "passes/base/Target.h"
#include "passes/batch/Parts.h"

#include "dialects/plan/PlanOps.h"

namespace gpuc {
#define GEN_PASS_DEF_SLICEBATCHPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

class SliceBatchPass : public impl::SliceBatchPassBase<SliceBatchPass> {
  using SliceBatchPassBase::SliceBatchPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Target> parsed = Target::parse(target, module);
    if (failed(parsed))
      return signalPassFailure();
    device_ = describe(*parsed);
    for (auto recipe : module.getOps<ir::RecipeOp>())
      if (failed(slice(module, recipe)))
        return signalPassFailure();
  }

  LogicalResult slice(ModuleOp module, ir::RecipeOp recipe) {
    int64_t rows = batch != 0 ? batch : recipe.getBatch().value_or(0), slices = slicesOf(rows);
    auto loss = module.lookupSymbol<func::FuncOp>(recipe.getLoss());
    if (slices == 1 || recipe.getAccumulate().value_or(1) != 1 || !recipe.getOptimizer() || !loss ||
        loss.isExternal() || module.lookupSymbol("gradients"))
      return success();
    auto copy = loss.clone();
    copy.setName((loss.getName() + "_of_slice").str());
    copy.setPrivate();
    // Under another name, if that one is taken.
    SymbolTable(module).insert(copy, std::next(Block::iterator(loss)));
    if (failed(inlineCalls(copy)))
      return failure();
    if (!isWorthIt(copy) || !addsUpIndependentRows(copy)) {
      copy.erase();
      return success();
    }
    FailureOr<ir::PartitionAttr> partition = recipe.getPartition(slices, rows / slices);
    if (failed(partition))
      return failure();
    copy->setAttr(ir::kPartitionAttr, *partition);
    markRows(copy, *partition);
    bindBatch(copy, partition->getRows());
    return success();
  }

  int64_t slicesOf(int64_t rows) const {
    int64_t slices = device_.mostSlices;
    while (slices > 1 && (rows % slices != 0 || rows / slices < device_.leastSliceRows))
      slices /= 2;
    return slices;
  }

  bool isWorthIt(func::FuncOp loss) const {
    bool recurs = false;
    int64_t weightBytes = 0;
    loss.walk([&](Operation *op) {
      auto scan = dyn_cast<ir::ScanOp>(op);
      recurs |= scan && scan.getTripCount() >= device_.leastSliceSteps &&
                llvm::any_of(scan.getInits().getTypes(), isDynamic);
      if (auto read = dyn_cast<ir::ReadOp>(op))
        weightBytes += ir::sizeInBytes(read.getType());
    });
    return recurs && weightBytes <= device_.mostSliceWeightBytes;
  }

  TargetDescription device_ = kHostDescription;
};

} // namespace
} // namespace gpuc
