//===- HasRows.cpp - What of a loss is of the batch's rows --------------------===//
//
// torch.export has known all shapes, so that no leading `?` says it. An input has rows if its first dimension
// is the batch's, and so has a weight that is spread over such a dimension. What is drawn at random is for
// rows if it hangs on one of these, or if it hangs on nothing and its own first dimension is that. A batch
// norm is of rows if it hangs on one of these.
//
//===----------------------------------------------------------------------===//

#include "frontend/torch/HasRows.h"

#include "dialects/gpuc/CountsRows.h"
#include "dialects/gpuc/GpucOps.h"

using namespace mlir;

namespace gpuc::torch {

static bool hasLeading(Type type, int64_t extent) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() > 0 && tensor.getDimSize(0) == extent;
}

/// Whether each row gets the same of what is no constant: a learned token, queries, a first state.
static bool spreadsOverRows(Operation &op, int64_t batch) {
  auto broadcast = dyn_cast<ir::BroadcastOp>(op);
  return broadcast && hasLeading(broadcast.getType(), batch) && !llvm::is_contained(broadcast.getDims(), 0) &&
         !broadcast.getOperand().getDefiningOp<ir::ConstantOp>();
}

void markRows(func::FuncOp loss, int64_t batch) {
  Builder attributes(loss.getContext());
  DenseSet<Value> rows;
  for (BlockArgument argument : loss.getArguments())
    if (hasLeading(argument.getType(), batch)) {
      loss.setArgAttr(argument.getArgNumber(), kHasRowsAttr, attributes.getUnitAttr());
      rows.insert(argument);
    }
  for (Operation &op : loss.getBody().front().without_terminator()) {
    const bool readsRows = llvm::any_of(op.getOperands(), [&](Value value) { return rows.contains(value); });
    const bool draws = isa<ir::RandomOpInterface, ir::AttentionOp>(op);
    const bool hangsOnNothing =
        isa<ir::RandomUniformOp, ir::RandomNormalOp>(op) || // of seed and step alone
        llvm::all_of(op.getOperands(), [](Value value) { return value.getDefiningOp<ir::ConstantOp>(); });
    const bool drawsRows = draws && hangsOnNothing && hasLeading(op.getResult(0).getType(), batch);
    if (!readsRows && !drawsRows && !spreadsOverRows(op, batch))
      continue;
    rows.insert(op.result_begin(), op.result_end());
    if (draws || isa<ir::BatchNormOp>(op))
      op.setAttr(kHasRowsAttr, attributes.getUnitAttr());
  }
}

} // namespace gpuc::torch
