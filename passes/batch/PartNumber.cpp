//===- PartNumber.cpp - What a part must know of the batch ----------------------===//

#include "passes/batch/Parts.h"

#include "dialects/gpuc/CountsRows.h"
#include "passes/base/AttentionViews.h"
#include "passes/base/CompositeOps.h"
#include "passes/base/Entries.h"
#include "passes/recipe/StepBuilder.h"

using namespace mlir;
using gpuc::ir::Expr;

namespace gpuc {

/// The bits from where the part begins: each part before it has drawn `elements`.
static LogicalResult moveBits(ir::RandomBitsOp bits, Value number, int64_t elements) {
  Value given = bits.getFrom();
  if (elements == 0 && given)
    return success();
  if (!isa<func::FuncOp>(bits->getParentOp()))
    return bits.emitOpError("draws for each row of the batch within a loop, but the batch is cut into parts: "
                            "draw outside of the loop, and pass the numbers as an input");
  OpBuilder builder(bits);
  Expr part(builder, bits.getLoc(), number);
  Expr from = part.constant(static_cast<double>(elements));
  if (elements != 0)
    from = part * from;
  if (given)
    from = cast(part.at(given), part.elementType()) + from;
  bits.getFromMutable().assign(from);
  return success();
}

/// Leaves random bits alone of all that draws, and makes them those that the whole batch has where the part
/// begins. Without rows they are the same in each part.
static LogicalResult moveRandom(func::FuncOp function, Value number) {
  DenseSet<int64_t> withRows;
  function.walk([&](Operation *op) {
    const bool draws = isa<ir::RandomOpInterface>(op) || dropsByCounters(op); // attention may keep all
    if (draws && op->hasAttr(ir::kPartitionAttr))
      withRows.insert(op->getAttrOfType<IntegerAttr>("id").getInt());
  });
  auto module = function->getParentOfType<ModuleOp>();
  if (!findCounter(module, "seed") || !findCounter(module, "step"))
    return failure();
  if (failed(decomposeWhere(function, [](ir::CompositeOpInterface op) {
        return isa<ir::RandomOpInterface>(op.getOperation()) || dropsByCounters(op);
      })))
    return failure();
  WalkResult result = function.walk([&](ir::RandomBitsOp bits) -> WalkResult {
    // The draws of one op have ids that differ by multiples of the stride.
    bool hasRows = withRows.contains(static_cast<int64_t>(bits.getId()) % ir::randomDrawStride);
    return moveBits(bits, number, hasRows ? ir::elementCount(bits.getType()) : 0);
  });
  return failure(result.wasInterrupted());
}

/// Of a part's rows, those hold a sample that the parts before it left: less than 0 is none, more than there
/// are is all.
static void countRows(BlockArgument rows, Value number, int64_t rowsOfPart, Location location) {
  OpBuilder builder = OpBuilder::atBlockBegin(rows.getOwner());
  Expr all(builder, location, rows);
  Value left = all - cast(all.at(number), all.elementType()) * static_cast<double>(rowsOfPart);
  rows.replaceAllUsesExcept(left, left.getDefiningOp());
}

/// What is 1 for the whole batch is so in its first part alone.
static void countOnce(func::FuncOp function, Value number) {
  Operation *end = function.getBody().front().getTerminator();
  for (OpOperand &operand : end->getOpOperands())
    if (function.removeResultAttr(operand.getOperandNumber(),
                                  StringAttr::get(function.getContext(), kCountsOnceAttr))) {
      OpBuilder builder(end);
      Expr isFirst = Expr(builder, end->getLoc(), number) == 0;
      operand.set(select(isFirst, isFirst.at(operand.get()), 0));
    }
}

LogicalResult addPartNumber(func::FuncOp function) {
  auto partition = function->getAttrOfType<ir::PartitionAttr>(ir::kPartitionAttr);
  auto type = RankedTensorType::get({}, IntegerType::get(function.getContext(), 64));
  unsigned end = function.getNumArguments();
  if (failed(function.insertArgument(end, type, {}, function.getLoc())))
    return failure();
  BlockArgument number = function.getArgument(end);
  if (BlockArgument rows = argumentOfRole(function, kRowsRole))
    countRows(rows, number, partition.getRows(), function.getLoc());
  countOnce(function, number);
  return moveRandom(function, number);
}

} // namespace gpuc
