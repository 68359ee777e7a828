//===- Shards.h - Trained variables, shared out among ranks -------------------===//
//
// Each rank keeps its share of what is trained and of what the optimizer keeps for it, and updates that
// alone: with the sum over ranks of a gradient, of which it takes its share. Who computes with a variable
// gathers it from all, when the step begins and wherever else it is read [Rajbhandari et al. 2020, ZeRO]. A
// share is a run of elements, so that an optimizer which updates each element by itself has the same bits;
// one that needs matrices as a whole is given them, gathered, and of what it computes a rank keeps its share,
// unless there are enough equal ones for each rank to own some (Owners.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/recipe/StepBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gpuc {

/// Makes of a variable a rank's share of it, one of `ranks`; false of one that is so small that a share,
/// which is aligned as all buffers are, would save nothing: that stays whole.
bool shareOut(ir::VariableOp variable, int64_t ranks);

/// The whole of what `variable` has a share of.
ir::Expr readWhole(StepBuilder &ops, ir::VariableOp variable);

/// The rank's own share of `whole`, which all have, as `variable` has one.
ir::Expr ownShare(StepBuilder &ops, ir::VariableOp variable, mlir::Value whole);

/// The sum of what ranks have computed of their shares.
ir::Expr overRanks(ir::Expr ofShares);

/// Reads of what has become a share gather it.
void gatherReads(mlir::ModuleOp module);

} // namespace gpuc
