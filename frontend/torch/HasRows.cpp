//===- HasRows.cpp - What of a loss is of the batch's rows --------------------===//
//
// torch.export has known all shapes, so that no leading `?` says it. Where a second graph, of more rows, was
// there to compare, it is known which inputs have rows, and which draws that hang on nothing (kRowsAreKnown).
// Else extents say it: an input has rows if its first dimension is the batch's, and so has a weight that is
// spread over such a dimension. What is drawn at random is for rows if it hangs on one of these, or if it
// hangs on nothing and its own first dimension is that, or it has elements for each row where it meets them
// (RowPlaces.h): noise of [length, batch], or of [batch · length]. A batch norm is of rows if it hangs on one
// of these.
//
//===----------------------------------------------------------------------===//

#include "frontend/torch/HasRows.h"

#include "dialects/gpuc/CountsRows.h"
#include "dialects/gpuc/GpucOps.h"
#include "frontend/torch/RowPlaces.h"

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

/// What draws whatever the batch holds.
static bool drawsFromNothing(Operation &op) {
  if (isa<ir::RandomUniformOp, ir::RandomNormalOp>(op)) // of seed and step alone
    return true;
  return isa<ir::RandomOpInterface, ir::AttentionOp>(op) &&
         llvm::all_of(op.getOperands(), [](Value value) { return value.getDefiningOp<ir::ConstantOp>(); });
}

static std::optional<bool> answerOf(Attribute known) {
  return known ? std::optional(cast<BoolAttr>(known).getValue()) : std::nullopt;
}

/// Whether an op draws for rows, where that is known.
static std::optional<bool> drawsForRows(Operation &op) { return answerOf(op.getAttr(kRowsAreKnownAttr)); }

static SmallVector<BlockArgument> argumentsWithRows(func::FuncOp loss, int64_t batch) {
  SmallVector<BlockArgument> found;
  for (BlockArgument argument : loss.getArguments()) {
    Attribute known = loss.removeArgAttr(argument.getArgNumber(), kRowsAreKnownAttr);
    if (answerOf(known).value_or(hasLeading(argument.getType(), batch)))
      found.push_back(argument);
  }
  return found;
}

/// What has the batch in front, and what lies where rows do.
static RowPlaces placesOf(Block &block, ArrayRef<BlockArgument> withRows, int64_t batch) {
  RowPlaces places;
  for (BlockArgument argument : withRows)
    places.try_emplace(argument);
  for (Operation &op : block.without_terminator())
    if (spreadsOverRows(op, batch) || (drawsFromNothing(op) && hasLeading(op.getResult(0).getType(), batch)))
      places.try_emplace(op.getResult(0));
  followRows(block, batch, places);
  followRowsBack(block, batch, places);
  return places;
}

void markRows(func::FuncOp loss, int64_t batch) {
  const UnitAttr yes = UnitAttr::get(loss.getContext());
  Block &block = loss.getBody().front();
  const SmallVector<BlockArgument> withRows = argumentsWithRows(loss, batch);
  const RowPlaces places = placesOf(block, withRows, batch);
  DenseSet<Value> rows(withRows.begin(), withRows.end());
  for (BlockArgument argument : withRows)
    loss.setArgAttr(argument.getArgNumber(), kHasRowsAttr, yes);
  auto isOfRows = [&](Operation &op) {
    if (std::optional<bool> known = drawsForRows(op))
      return *known;
    return llvm::any_of(op.getOperands(), [&](Value value) { return rows.contains(value); }) ||
           (drawsFromNothing(op) && places.contains(op.getResult(0))) || spreadsOverRows(op, batch);
  };
  for (Operation &op : block.without_terminator()) {
    const bool marked = isOfRows(op);
    op.removeAttr(kRowsAreKnownAttr);
    if (!marked)
      continue;
    rows.insert(op.result_begin(), op.result_end());
    if (isa<ir::RandomOpInterface, ir::AttentionOp, ir::BatchNormOp>(op))
      op.setAttr(kHasRowsAttr, yes);
  }
}

} // namespace gpuc::torch
