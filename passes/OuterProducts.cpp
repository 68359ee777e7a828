//===- OuterProducts.cpp - Products over one element -------------------------===//

#include "passes/OuterProducts.h"

namespace gpuc {

using namespace mlir;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

bool contractsOneElement(Operation *op) {
  auto matmul = dyn_cast<ir::MatmulOp>(op);
  if (!matmul)
    return false;
  RankedTensorType lhs = typeOf(matmul.getLhs());
  return matmul.getType().hasStaticShape() && lhs.getShape().end()[matmul.getTransposeLhs() ? -2 : -1] == 1;
}

/// The operand of extents `shape`, its matrices being vectors, spread over the result: its last dimension
/// becomes dimension `last`.
static Value spread(OpBuilder &builder, Location location, Value operand, ArrayRef<int64_t> shape,
                    RankedTensorType result, int64_t last) {
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
  dims.back() = last;
  Value vectors = ir::ReshapeOp::create(builder, location, result.clone(shape), operand);
  return ir::BroadcastOp::create(builder, location, result, vectors, dims);
}

static Value multiply(ir::MatmulOp matmul) {
  OpBuilder builder(matmul);
  Location location = matmul.getLoc();
  RankedTensorType result = matmul.getType();
  const int64_t rank = result.getRank();
  SmallVector<int64_t> rows(result.getShape().drop_back()), columns(result.getShape().drop_back(2));
  if (matmul.hasSharedRhs())
    columns.clear();
  columns.push_back(result.getShape().back());
  return ir::MulOp::create(builder, location, result,
                           spread(builder, location, matmul.getLhs(), rows, result, rank - 2),
                           spread(builder, location, matmul.getRhs(), columns, result, rank - 1));
}

void multiplyOuterProducts(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (contractsOneElement(&op)) {
      auto matmul = cast<ir::MatmulOp>(op);
      matmul.replaceAllUsesWith(multiply(matmul));
      matmul.erase();
    }
}

bool isOuterProduct(Operation *op) {
  auto isRepeated = [](Value operand) {
    auto broadcast = operand.getDefiningOp<ir::BroadcastOp>();
    return broadcast &&
           2 * ir::elementCount(broadcast.getOperand().getType()) <= ir::elementCount(broadcast.getType());
  };
  return isa<ir::MulOp>(op) && llvm::all_of(op->getOperands(), isRepeated);
}

} // namespace gpuc
