//===- MeanGradients.cpp - From a part's sums to the gradients of the batch's mean ===//

#include "passes/train/MeanGradients.h"

#include "dialects/gpuc/CountsRows.h"
#include "passes/base/CompositeOps.h"
#include "passes/base/Entries.h"
#include "passes/base/Inline.h"
#include "passes/base/Locations.h"
#include "passes/base/TensorSizes.h"
#include "passes/batch/Parts.h"

#include "llvm/ADT/SetVector.h"

namespace gpuc {

using namespace mlir;
using ir::Expr;

/// The count, or 1 where nothing counts: the sums are zero then, and so is what is left of them.
static Expr divisorOf(Expr count) {
  Expr any = count > 0;
  return select(any, count, 1);
}

//===----------------------------------------------------------------------===//
// The count alone
//===----------------------------------------------------------------------===//

/// Erases what the function's results do not need.
static void keepWhatIsReturned(func::FuncOp function) {
  Block &body = function.getBody().front();
  llvm::SetVector<Operation *> needed;
  needed.insert(body.getTerminator());
  for (size_t next = 0; next < needed.size(); ++next) {
    for (Value operand : needed[next]->getOperands())
      if (Operation *op = operand.getDefiningOp())
        needed.insert(op);
    // The next part reads what this one assigns.
    if (auto read = dyn_cast<ir::ReadOp>(needed[next]))
      for (auto assign : body.getOps<ir::AssignOp>())
        if (assign.getVariable() == read.getVariable())
          needed.insert(assign);
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (!needed.contains(&op))
      op.erase();
}

/// A function of what `gradients` takes, but for the seed, that returns the count over all parts.
static FailureOr<func::FuncOp> buildCount(func::FuncOp gradients) {
  func::FuncOp counts = gradients.clone();
  SymbolTable(gradients->getParentOfType<ModuleOp>()).insert(counts, Block::iterator(gradients));
  Operation *end = counts.getBody().front().getTerminator();
  end->setOperands(end->getOperand(1));
  Attribute once = gradients.getResultAttr(1, kCountsOnceAttr);
  counts.setResAttrsAttr({});
  counts.setType(FunctionType::get(counts.getContext(), counts.getArgumentTypes(), end->getOperandTypes()));
  if (once)
    counts.setResultAttr(0, kCountsOnceAttr, once);
  // A loss as a whole would need its logits.
  if (failed(decomposeWhere(counts, [](Operation *op) { return isa<ir::LossOpInterface>(op); })))
    return failure();
  keepWhatIsReturned(counts);
  if (failed(counts.eraseArgument(argumentOfRole(counts, kSeedRole).getArgNumber())) ||
      failed(sumOverParts(counts)))
    return failure();
  for (auto assign : llvm::make_early_inc_range(counts.getOps<ir::AssignOp>()))
    assign.erase(); // The gradients do that.
  return counts;
}

//===----------------------------------------------------------------------===//
// Seed and sums
//===----------------------------------------------------------------------===//

/// `value` flows back from the loss.
static LogicalResult setSeed(func::FuncOp gradients, Value value) {
  BlockArgument seed = argumentOfRole(gradients, kSeedRole);
  seed.replaceAllUsesWith(value);
  return gradients.eraseArgument(seed.getArgNumber());
}

/// Without a scale: gradients are those of the sum.
static LogicalResult seedWithOne(func::FuncOp gradients) {
  Value loss = gradients.getBody().front().getTerminator()->getOperand(0);
  OpBuilder builder = OpBuilder::atBlockBegin(&gradients.getBody().front());
  return setSeed(gradients, ir::ConstantOp::create(builder, backwardOf(loss.getLoc()), loss.getType(), 1.0));
}

/// Gradients are those of the mean, times the scale. `count` gives the count of the whole batch; null where
/// `gradients` itself is over all of it.
static LogicalResult seedWithScale(func::FuncOp gradients, func::FuncOp count, const LossScale &lossScale) {
  Block &body = gradients.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  Value counted = body.getTerminator()->getOperand(1);
  if (count) {
    SmallVector<Value> arguments(body.getArguments());
    arguments.erase(arguments.begin() + argumentOfRole(gradients, kSeedRole).getArgNumber());
    counted = cloneBody(builder, count, arguments).front();
    count.erase();
  } else {
    builder.setInsertionPointAfterValue(counted);
  }
  StepBuilder ops(builder, NameLoc::get(builder.getStringAttr("loss_scale")));
  Expr scale = cast(lossScale.build(ops), getElementTypeOrSelf(counted));
  return setSeed(gradients, scale / divisorOf(ops.at(counted)));
}

/// What the recipe wants to be cut must have been cut.
static LogicalResult checkParts(ir::RecipeOp recipe, func::FuncOp gradients) {
  const int64_t ranks = recipe.getEmulateRanks().value_or(1),
                microbatches = recipe.getAccumulate().value_or(1);
  bool hasRows = llvm::any_of(llvm::seq(gradients.getNumArguments()), [&](unsigned index) {
    return gradients.getArgAttr(index, ir::kPartitionAttr) != nullptr;
  });
  if ((ranks == 1 && microbatches == 1 && !recipe.isDataParallel()) || hasRows)
    return success();
  InFlightDiagnostic error = recipe.emitOpError();
  if (recipe.isDataParallel())
    error << "is data_parallel";
  else if (ranks != 1)
    error << "emulates " << ranks << " ranks";
  else
    error << "accumulates over " << microbatches << " microbatches";
  return error << ", but no input of @" << recipe.getLoss() << " has rows to cut: give it a leading `?`";
}

/// Makes of `gradients` a function over the whole batch, without a seed.
static LogicalResult sumGradients(func::FuncOp &gradients, ir::RecipeOp recipe,
                                  const std::optional<LossScale> &lossScale) {
  auto module = gradients->getParentOfType<ModuleOp>();
  Attribute partition = gradients->getAttr(ir::kPartitionAttr);
  if (failed(checkParts(recipe, gradients)))
    return failure();
  if (!lossScale && failed(seedWithOne(gradients)))
    return failure();
  func::FuncOp count;
  if (lossScale && partition) {
    FailureOr<func::FuncOp> built = buildCount(gradients);
    if (failed(built))
      return failure();
    count = *built;
  }
  if (failed(sumOverParts(gradients)))
    return failure();
  if (lossScale && failed(seedWithScale(gradients, count, *lossScale)))
    return failure();
  if (!partition)
    return success();
  module->setAttr(ir::kPartitionAttr, partition);
  return checkTensorSizes(module);
}

//===----------------------------------------------------------------------===//
// Means
//===----------------------------------------------------------------------===//

SmallVector<ir::VariableOp> trainedBy(func::FuncOp gradients) {
  auto module = gradients->getParentOfType<ModuleOp>();
  SmallVector<ir::VariableOp> variables;
  for (unsigned index = kFirstGradient; index < gradients.getNumResults(); ++index) {
    auto symbol = gradients.getResultAttrOfType<FlatSymbolRefAttr>(index, "gpuc.variable");
    variables.push_back(module.lookupSymbol<ir::VariableOp>(symbol.getAttr()));
  }
  return variables;
}

FailureOr<MeanGradients> buildMeanGradients(EntryBuilder &entry, Location location, ir::RecipeOp recipe,
                                            func::FuncOp gradients,
                                            const std::optional<LossScale> &lossScale) {
  if (failed(sumGradients(gradients, recipe, lossScale)))
    return failure();
  FailureOr<SmallVector<Value>> computed = entry.append(gradients);
  if (failed(computed))
    return failure();
  StepBuilder ops(entry.builder(), location);
  MeanGradients result;
  result.loss = (*computed)[0];
  result.count = (*computed)[1];
  result.sums.assign(computed->begin() + kFirstGradient, computed->end());
  result.divisor = divisorOf(ops.at(result.count));
  if (lossScale)
    result.scale = lossScale->build(ops);
  // By one number, which was divided by once: dividing each gradient takes as long as the whole update.
  Expr factor = 1 / ops.at(lossScale ? result.scale : result.divisor);
  for (auto [variable, sum] : llvm::zip_equal(trainedBy(gradients), result.sums)) {
    StepBuilder atVariable(entry.builder(), NameLoc::get(variable.getSymNameAttr()));
    Expr gradient = atVariable.at(sum);
    result.trained.push_back({variable, gradient * spread(factor, gradient)});
  }
  return result;
}

} // namespace gpuc
