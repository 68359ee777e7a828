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
// the statistics of norms that are synchronised. Of what ranks share out each has its share of the sum, by
// runs of elements or as the owner of some of the results; it may have that of each microbatch already.
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
LogicalResult reduceToOwners(func::FuncOp share) {
  Operation *terminator = share.getBody().front().getTerminator();
  llvm::MapVector<int64_t, SmallVector<unsigned>>
      owned; // by the first one's number, where others still stand
  DenseMap<int64_t, int64_t> ranks;
  for (unsigned index = 0; index < share.getNumResults(); ++index)
    if (auto group = share.getResultAttrOfType<DenseI64ArrayAttr>(index, kOwnersAttr)) {
      owned[group[0]].push_back(index);
      ranks[group[0]] = group[1];
    }
  OpBuilder builder(terminator);
  BitVector others(share.getNumResults());
  for (auto &[group, members] : owned) {
    const SmallVector<Value> wholes =
        llvm::map_to_vector(members, [&](unsigned member) { return terminator->getOperand(member); });
    const unsigned first = members.front();
    terminator->setOperand(first, ir::ReduceToOwnersOp::create(builder, wholes.front().getLoc(),
                                                               wholes.front().getType(), wholes,
                                                               ranks.lookup(group)));
    share.removeResultAttr(first, builder.getStringAttr(kOwnersAttr));
    share.setResultAttr(first, kSharedOutAttr, builder.getUnitAttr());
    for (unsigned member : llvm::drop_begin(members))
      others.set(member);
  }
  terminator->eraseOperands(others);
  return share.eraseResults(others);
}

void scatter(func::FuncOp share) {
  OpBuilder builder(share.getBody().front().getTerminator());
  for (OpOperand &operand : share.getBody().front().getTerminator()->getOpOperands()) {
    const unsigned index = operand.getOperandNumber();
    auto ranks = share.getResultAttrOfType<IntegerAttr>(index, kScatterAttr);
    if (!ranks)
      continue;
    Location location = operand.get().getLoc();
    operand.set(ir::ReduceScatterOp::create(builder, location, operand.get(), ranks.getInt()));
    share.removeResultAttr(index, builder.getStringAttr(kScatterAttr));
    share.setResultAttr(index, kSharedOutAttr, builder.getUnitAttr());
  }
  Operation *terminator = share.getBody().front().getTerminator();
  share.setFunctionType(builder.getFunctionType(share.getArgumentTypes(), terminator->getOperandTypes()));
}

/// Of what is not shared out.
void allReduce(func::FuncOp share) {
  Operation *terminator = share.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  for (OpOperand &operand : terminator->getOpOperands()) {
    Value part = operand.get();
    if (!share.getResultAttr(operand.getOperandNumber(), kSharedOutAttr))
      operand.set(ir::AllReduceOp::create(builder, part.getLoc(), part.getType(), part));
  }
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

LogicalResult shareOutSums(func::FuncOp part) {
  if (failed(reduceToOwners(part)))
    return failure();
  scatter(part);
  return success();
}

LogicalResult reduceOverRanks(func::FuncOp share, const llvm::StringSet<> &alike) {
  if (failed(readRank(share)) || failed(assignMeans(share, alike)) || failed(shareOutSums(share)))
    return failure();
  allReduce(share);
  for (unsigned index = 0; index < share.getNumArguments(); ++index)
    share.removeArgAttr(index, ir::kPartitionAttr);
  share->removeAttr(ir::kPartitionAttr);
  return success();
}

} // namespace gpuc
