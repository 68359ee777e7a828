//===- ShardBatch.cpp - A batch in shards, side by side -----------------------===//
//
// Contract: where the recipe's loss is a recurrent network's, adds a copy of it over a part of the batch's
// rows, with the attribute `gpuc.shards`, how many of them make the batch. gpuc-autodiff takes the gradients
// of that copy and gpuc-accumulate adds up those of all shards. Calls in the copy are inlined.
//
// A loop over time does little work in each command, and threads that share each of them spend their time
// waiting for one another. A shard goes through all of the step without the others. What that costs, a sum
// for each weight, is little where weights are small. How many shards there are depends on the model alone,
// not on the machine: the same plan gives the same bits with any number of threads.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/Inline.h"
#include "passes/base/Target.h"
#include "passes/batch/BatchBinding.h"
#include "passes/batch/Rows.h"

#include "dialects/gpuc/GpucOps.h"
#include "dialects/plan/PlanOps.h"

namespace gpuc {
#define GEN_PASS_DEF_SHARDBATCHPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

class ShardBatchPass : public impl::ShardBatchPassBase<ShardBatchPass> {
  using ShardBatchPassBase::ShardBatchPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Target> parsed = Target::parse(target, module);
    if (failed(parsed))
      return signalPassFailure();
    device_ = describe(*parsed);
    for (auto recipe : module.getOps<ir::RecipeOp>())
      if (failed(shard(module, recipe)))
        return signalPassFailure();
  }

  LogicalResult shard(ModuleOp module, ir::RecipeOp recipe) {
    int64_t shards = shardsOf(batch != 0 ? batch : recipe.getBatch().value_or(0));
    auto loss = module.lookupSymbol<func::FuncOp>(recipe.getLoss());
    if (shards == 1 || recipe.getAccumulate().value_or(1) != 1 || !recipe.getOptimizer() || !loss ||
        loss.isExternal() || module.lookupSymbol("gradients"))
      return success();
    OpBuilder builder(loss);
    auto copy = cast<func::FuncOp>(loss->clone());
    copy.setName((loss.getName() + "_of_shard").str());
    copy.setPrivate();
    // Under another name, if that one is taken.
    SymbolTable(module).insert(copy, std::next(Block::iterator(loss)));
    if (failed(inlineCalls(copy)))
      return failure();
    if (!isWorthIt(copy) || !addsUpIndependentRows(copy)) {
      copy.erase();
      return success();
    }
    markRows(copy);
    bindBatch(copy, (batch != 0 ? batch : *recipe.getBatch()) / shards);
    copy->setAttr(kShardsAttr, builder.getI64IntegerAttr(shards));
    return success();
  }

  int64_t shardsOf(int64_t rows) const {
    int64_t shards = device_.mostShards;
    while (shards > 1 && (rows % shards != 0 || rows / shards < device_.leastShardRows))
      shards /= 2;
    return shards;
  }

  bool isWorthIt(func::FuncOp loss) const {
    bool recurs = false;
    int64_t weightBytes = 0;
    loss.walk([&](Operation *op) {
      auto scan = dyn_cast<ir::ScanOp>(op);
      recurs |= scan && scan.getTripCount() >= device_.leastShardSteps &&
                llvm::any_of(scan.getInits().getTypes(), isDynamic);
      if (auto read = dyn_cast<ir::ReadOp>(op))
        weightBytes += ir::sizeInBytes(read.getType());
    });
    return recurs && weightBytes <= device_.mostShardWeightBytes;
  }

  TargetDescription device_ = kHostDescription;
};

} // namespace
} // namespace gpuc
