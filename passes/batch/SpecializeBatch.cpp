//===- SpecializeBatch.cpp - Binds the batch --------------------------------===//
//
// Contract: a leading `?` is the same number wherever it stands in a module, so binding it is a replacement
// of types, and nothing has to be inferred. Every type is replaced where it is kept: in results, in block
// arguments and in attributes (function types). The module then has static shapes only, which this pass
// checks before it claims so. Loops with `batch_first` become loops over their first dimension.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/base/Entries.h"
#include "passes/base/TensorSizes.h"
#include "passes/batch/Parts.h"

namespace gpuc {
#define GEN_PASS_DEF_SPECIALIZEBATCHPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

/// The first op under `root` that has a `?` in a type that it keeps, or null.
Operation *findDynamic(Operation *root) {
  Operation *found = nullptr;
  auto holdsDynamic = [](auto element) {
    return element
        .walk([](Type type) { return isDynamic(type) ? WalkResult::interrupt() : WalkResult::advance(); })
        .wasInterrupted();
  };
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool dynamic = llvm::any_of(op->getResultTypes(), isDynamic) || holdsDynamic(op->getAttrDictionary());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        dynamic |= llvm::any_of(block.getArgumentTypes(), isDynamic);
    if (!dynamic)
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

/// The first two dimensions change places.
Value swapFront(OpBuilder &builder, Location location, Value value) {
  SmallVector<int64_t> permutation =
      llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(value.getType()).getRank()));
  std::swap(permutation[0], permutation[1]);
  return ir::TransposeOp::create(builder, location, value, permutation);
}

/// Puts a scan whose stacks have time first in the place of one with `batch_first`: its inputs and outputs
/// are transposed. Needs static shapes.
void putTimeFirst(ir::ScanOp scan) {
  OpBuilder builder(scan);
  Location location = scan.getLoc();
  auto inputs =
      llvm::map_to_vector(scan.getInputs(), [&](Value input) { return swapFront(builder, location, input); });
  auto built = ir::ScanOp::create(builder, location, inputs, scan.getInits(), scan.getCaptures(),
                                  TypeRange(scan.getOutputSlices()), scan.getTripCount(), scan.getReverse(),
                                  scan.getRecompute());
  built.setChunked(scan.getChunked());
  built.setParallel(scan.getParallel());
  built.getBody().takeBody(scan.getBody());
  SmallVector<Value> results(built.getFinals());
  for (Value output : built.getOutputs())
    results.push_back(swapFront(builder, location, output));
  scan->replaceAllUsesWith(results);
  scan.erase();
}

class SpecializeBatchPass : public impl::SpecializeBatchPassBase<SpecializeBatchPass> {
  using SpecializeBatchPassBase::SpecializeBatchPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    // Passes may well compute with nothing: the steps between a loop's first and its last, of one step.
    if (!isExpanded(module) && failed(checkExtents(module)))
      return signalPassFailure();
    FailureOr<int64_t> chosen = chooseBatch(module);
    if (failed(chosen))
      return signalPassFailure();
    if (*chosen == 0)
      return turnLoops(); // Static shapes and nothing that says how many rows they have.

    module->setAttr("gpuc.batch", Builder(module).getI64IntegerAttr(*chosen));
    for (auto recipe : module.getOps<ir::RecipeOp>())
      if (failed(markParts(module, recipe, *chosen)))
        return signalPassFailure();
    for (auto function : module.getOps<func::FuncOp>())
      forgetRows(function);
    bindBatch(module, *chosen);
    if (Operation *left = findDynamic(module)) {
      left->emitOpError("has a `?` that is not the leading dimension: only the batch may be unknown");
      return signalPassFailure();
    }
    if (failed(checkTensorSizes(module)))
      return signalPassFailure();
    turnLoops();
  }

  /// Where the recipe accumulates, what is bound here is a microbatch, of one rank if it emulates several.
  /// The loss may be in functions that it calls, so what has rows is marked in all of them.
  static LogicalResult markParts(ModuleOp module, ir::RecipeOp recipe, int64_t rows) {
    auto loss = module.lookupSymbol<func::FuncOp>(recipe.getLoss());
    FailureOr<ir::PartitionAttr> partition = recipe.getPartition(/*slices=*/1, rows);
    if (failed(partition) || !*partition || !loss)
      return failure(failed(partition));
    loss->setAttr(ir::kPartitionAttr, *partition);
    for (auto function : module.getOps<func::FuncOp>())
      markRows(function, *partition);
    return success();
  }

  /// Nothing needs the batch to lead any more: loops over time get that first.
  void turnLoops() {
    SmallVector<ir::ScanOp> scans;
    getOperation().walk([&](ir::ScanOp scan) {
      if (scan.getBatchFirst())
        scans.push_back(scan);
    });
    llvm::for_each(scans, putTimeFirst);
  }

  /// The batch, 0 if none is known and none is needed.
  FailureOr<int64_t> chooseBatch(ModuleOp module) {
    int64_t given = batch, chosen = given;
    if (given < 0)
      return module.emitError("batch must be at least 1, not ") << given;
    auto recipes = module.getOps<ir::RecipeOp>();
    if (chosen == 0 && !recipes.empty())
      chosen = (*recipes.begin()).getBatch().value_or(0);

    bool needed = findDynamic(module) != nullptr;
    if (needed && chosen == 0)
      return module.emitError("no batch is known: pass --batch=N or give the recipe `batch = N`");
    auto bound = module->getAttrOfType<IntegerAttr>("gpuc.batch");
    if (!needed && bound) {
      if (given != 0 && given != bound.getInt())
        return module.emitError("the batch is already bound to ") << bound.getInt() << ", not to " << given;
      return bound.getInt();
    }
    if (needed || chosen == 0 || hasInputOfRows(module, chosen))
      return chosen;
    if (!recipes.empty())
      return module.emitError("no shape has a leading `?` for a batch of ")
             << chosen << " to be bound to, and no input has " << chosen << " rows: leave "
             << (given == 0 ? "the recipe's `batch`" : "--batch") << " out";
    module.emitWarning("batch=") << given << " changes nothing: no shape has a leading `?`";
    return chosen;
  }

  /// Of static shapes a batch is what they have.
  static bool hasInputOfRows(ModuleOp module, int64_t rows) {
    auto hasRows = [&](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && tensor.getRank() > 0 && tensor.getDimSize(0) == rows;
    };
    return llvm::any_of(module.getOps<func::FuncOp>(), [&](func::FuncOp function) {
      return llvm::any_of(function.getArgumentTypes(), hasRows);
    });
  }
};

} // namespace
} // namespace gpuc
