//===- Shards.cpp - Trained variables, shared out among ranks -----------------===//

#include "passes/train/Shards.h"

#include "runtime/plan/header.h"

namespace gpuc {

using namespace mlir;
using ir::Expr;

bool shareOut(ir::VariableOp variable, int64_t ranks) {
  RankedTensorType whole = variable.getWholeType();
  if (ir::sizeInBytes(whole) < ranks * static_cast<int64_t>(kBufferAlignment))
    return false;
  variable.setShardOf(whole.getShape());
  variable.setShards(ranks);
  variable.setType(ir::shareOf(whole, ranks));
  return true;
}

static Value gather(OpBuilder &builder, Location location, ir::VariableOp variable, Value share) {
  return ir::AllGatherOp::create(builder, location, variable.getWholeType(), share, *variable.getShards());
}

Expr readWhole(StepBuilder &ops, ir::VariableOp variable) {
  return ops.at(gather(ops.builder(), ops.location(), variable, ops.read(variable)));
}

/// Which elements these are only the rank knows.
Expr ownShare(StepBuilder &ops, ir::VariableOp variable, Value whole) {
  const int64_t ranks = *variable.getShards(), elements = variable.getWholeType().getNumElements(),
                each = cast<RankedTensorType>(variable.getType()).getNumElements();
  auto type = cast<RankedTensorType>(variable.getType());
  Expr flat = reshape(ops.at(whole), type.clone({elements}));
  Expr padded = ops.at(ir::PadOp::create(ops.builder(), ops.location(), type.clone({ranks * each}), flat,
                                         ArrayRef<int64_t>{0}, ArrayRef<int64_t>{ranks * each - elements},
                                         ArrayRef<int64_t>{0}, APFloat(0.0)));
  Expr shares = reshape(padded, type.clone({ranks, each}));
  auto module = variable->getParentOfType<ModuleOp>();
  Value rank = ops.read(module.lookupSymbol<ir::VariableOp>("rank"));
  return ops.at(ir::GatherOp::create(ops.builder(), ops.location(), type, shares, rank, /*dim=*/0));
}

Expr overRanks(Expr ofShares) { return ofShares.make<ir::AllReduceOp>(ofShares.type(), ofShares.value()); }

void gatherReads(ModuleOp module) {
  SymbolTable symbols(module);
  module.walk([&](ir::ReadOp read) {
    auto variable = symbols.lookup<ir::VariableOp>(read.getVariable());
    if (!variable || !variable.getShardOf() || read.getType() == variable.getType())
      return;
    OpBuilder builder(read);
    Value share = ir::ReadOp::create(builder, read.getLoc(), variable.getType(), read.getVariable());
    read.replaceAllUsesWith(gather(builder, read.getLoc(), variable, share));
    read.erase();
  });
}

} // namespace gpuc
