//===- NarrowIndices.cpp - Max pooling's indices as places in a window -------===//
//
// Contract: no bit changes. The gradient of max pooling keeps its indices, which as i64 are twice as long as
// its values. The place within the window says as much, and has room in a byte: so each max_pool2d gives
// places, and an index is computed of a place only where the model reads indices itself.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialects/gpuc/Expr.h"
#include "dialects/gpuc/Windows.h"

namespace gpuc {
#define GEN_PASS_DEF_NARROWINDICESPASS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

/// h · W + v of the elements at these places in their windows, as i64.
Value indicesOf(ir::Expr places, const ir::Windows2d &windows, int64_t width) {
  ir::Expr place = ir::cast(places, IntegerType::get(places.type().getContext(), 64));
  ir::Expr row = place / static_cast<double>(windows.columns.size);
  ir::Expr column = place - row * static_cast<double>(windows.columns.size);
  auto position = [&](const ir::Windows &along, size_t dim, ir::Expr steps) {
    ir::Expr window = place.make<ir::IotaOp>(place.type(), static_cast<uint64_t>(dim));
    return window * static_cast<double>(along.stride) - static_cast<double>(along.low) +
           steps * static_cast<double>(along.dilation);
  };
  return position(windows.rows, windows.rowDim, row) * static_cast<double>(width) +
         position(windows.columns, windows.columnDim(), column);
}

void narrowIndices(ir::MaxPool2dOp pool) {
  const ir::Windows2d windows = ir::windowsOf(pool);
  Value indices = pool.getIndices();
  auto type = cast<RankedTensorType>(indices.getType());
  IntegerType narrow = ir::narrowestIndex(pool.getContext(), pool.getWindow());
  if (ir::arePlaces(indices) || narrow == type.getElementType())
    return;
  auto uses = llvm::map_to_vector(indices.getUses(), [](OpOperand &use) { return &use; });
  if (!uses.empty() && !type.hasStaticShape()) // nothing is computed of a batch that is not known
    return;
  indices.setType(type.clone(narrow));
  if (uses.empty())
    return;
  OpBuilder builder(pool->getContext());
  builder.setInsertionPointAfter(pool);
  const int64_t width = ir::shapeOf(pool.getOperand())[windows.columnDim()];
  Value wide = indicesOf(ir::Expr(builder, pool.getLoc(), indices), windows, width);
  for (OpOperand *use : uses)
    use->set(wide);
}

class NarrowIndicesPass : public impl::NarrowIndicesPassBase<NarrowIndicesPass> {
  void runOnOperation() override { getOperation().walk(narrowIndices); }
};

} // namespace
} // namespace gpuc
