//===- ShareOfRank.cpp - From a rank's share of the batch to all of it ---------===//
//
// Contract: what a function over one rank's rows returns are sums, so that the sums over all ranks, which
// `gpuc.all_reduce` makes, are those over the whole batch, and all that is divided by the batch's count is
// divided once, behind them. Each rank then goes on with the same numbers, and makes the same update.
//
// The function is the same for each rank, and for any number of them: which rows are its own, and where its
// random numbers begin, follows from the variable `rank`, which the session sets. Ranks know nothing of one
// another's running statistics; the mean of what they assign is assigned. It adds up as a loop over emulated
// ranks does, so that both have the same bits. What all of them assign alike needs no mean: counters, and
// the statistics of norms that are synchronised.
//
//===----------------------------------------------------------------------===//

#include "passes/batch/Parts.h"

#include "passes/recipe/StepBuilder.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using gpuc::ir::Expr;

namespace gpuc {
namespace {

bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

/// A counter of the session, which is no concern of the model's.
ir::VariableOp findSessionCounter(func::FuncOp function, StringRef name) {
  return findCounter(function->getParentOfType<ModuleOp>(), name, /*element=*/{}, /*first=*/0,
                     "what a session counts");
}

LogicalResult readRank(func::FuncOp share) {
  ir::VariableOp rank = findSessionCounter(share, "rank");
  if (!rank)
    return failure();
  BlockArgument number = share.getArguments().back();
  OpBuilder builder = OpBuilder::atBlockBegin(number.getOwner());
  number.replaceAllUsesWith(ir::ReadOp::create(builder, share.getLoc(), number.getType(), "rank"));
  return share.eraseArgument(number.getArgNumber());
}

/// Whether all ranks have the same there: what is made of variables, and of sums over ranks.
bool isAlikeOnRanks(Value value) {
  llvm::SetVector<Value> needed;
  needed.insert(value);
  for (size_t next = 0; next < needed.size(); ++next) {
    auto result = dyn_cast<OpResult>(needed[next]);
    if (!result || result.getOwner()->getNumRegions() != 0)
      return false; // an argument, or a loop
    auto norm = dyn_cast<ir::BatchNormOp>(result.getOwner());
    if (norm && norm.getSync() && result.getResultNumber() != 0)
      needed.insert_range(ValueRange{norm.getRunningMean(), norm.getRunningVariance()});
    else if (!isa<ir::AllReduceOp>(result.getOwner()))
      needed.insert_range(result.getOwner()->getOperands());
  }
  return true;
}

LogicalResult assignMeans(func::FuncOp share, const llvm::StringSet<> &alike) {
  // Every such plan has it: by it a session knows that ranks may share the work.
  ir::VariableOp worldSize = findSessionCounter(share, "world_size");
  if (!worldSize)
    return failure();
  for (auto assign : llvm::make_early_inc_range(share.getOps<ir::AssignOp>())) {
    Type type = assign.getValue().getType();
    if (getElementTypeOrSelf(type).isInteger(1))
      return assign.emitOpError("assigns ")
             << type << " in each rank, of which the mean is taken: have it assign numbers";
    if (alike.contains(assign.getVariable()))
      continue;
    OpBuilder builder(assign);
    StepBuilder ops(builder, assign.getLoc());
    Expr sum = ops.at(ir::AllReduceOp::create(builder, assign.getLoc(), type, assign.getValue()));
    Expr ranks = cast(ops.read(worldSize), getElementTypeOrSelf(type));
    assign.getValueMutable().assign(sum / spread(ranks, sum));
  }
  return success();
}

/// What a rank owns of several results comes in the place of the first of them.
LogicalResult reduceToOwners(func::FuncOp share, Operation *terminator) {
  llvm::MapVector<int64_t, SmallVector<Value>> owned;
  DenseMap<int64_t, int64_t> ranks;
  BitVector others(share.getNumResults());
  for (unsigned index = 0; index < share.getNumResults(); ++index)
    if (auto group = share.getResultAttrOfType<DenseI64ArrayAttr>(index, kOwnersAttr)) {
      const int64_t first = group[0];
      owned[first].push_back(terminator->getOperand(index));
      ranks[first] = group[1];
      if (index != first)
        others.set(index);
    }
  OpBuilder builder(terminator);
  for (auto &[first, wholes] : owned)
    terminator->setOperand(first, ir::ReduceToOwnersOp::create(builder, wholes.front().getLoc(),
                                                               wholes.front().getType(), wholes,
                                                               ranks.lookup(first)));
  terminator->eraseOperands(others);
  return share.eraseResults(others);
}

/// What is shared out in each microbatch has been summed there, and what ranks own before.
void reduceResults(func::FuncOp share) {
  Operation *terminator = share.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  for (OpOperand &operand : terminator->getOpOperands()) {
    const unsigned index = operand.getOperandNumber();
    Value part = operand.get();
    if (share.getResultAttr(index, kOwnersAttr))
      continue;
    if (auto ranks = share.getResultAttrOfType<IntegerAttr>(index, kScatterAttr))
      operand.set(ir::ReduceScatterOp::create(builder, part.getLoc(), part, ranks.getInt()));
    else if (!share.getResultAttr(index, kScatterEachAttr))
      operand.set(ir::AllReduceOp::create(builder, part.getLoc(), part.getType(), part));
  }
  share.setFunctionType(builder.getFunctionType(share.getArgumentTypes(), terminator->getOperandTypes()));
}

} // namespace

llvm::StringSet<> assignedAlike(func::FuncOp part) {
  // The mean of floats that are alike may differ from them in the last bit, and emulated ranks take it.
  const bool isSynced =
      llvm::any_of(part.getOps<ir::BatchNormOp>(), [](ir::BatchNormOp norm) { return norm.getSync(); });
  llvm::StringSet<> alike;
  for (auto assign : part.getOps<ir::AssignOp>())
    if ((isSynced || !isFloat(assign.getValue())) && isAlikeOnRanks(assign.getValue()))
      alike.insert(assign.getVariable());
  return alike;
}

LogicalResult reduceOverRanks(func::FuncOp share, const llvm::StringSet<> &alike) {
  if (failed(readRank(share)) || failed(assignMeans(share, alike)) ||
      failed(reduceToOwners(share, share.getBody().front().getTerminator())))
    return failure();
  reduceResults(share);
  for (unsigned index = 0; index < share.getNumArguments(); ++index)
    share.removeArgAttr(index, ir::kPartitionAttr);
  share->removeAttr(ir::kPartitionAttr);
  return success();
}

} // namespace gpuc
