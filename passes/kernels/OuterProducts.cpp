//===- OuterProducts.cpp - Products over one element -------------------------===//

#include "passes/kernels/FuseSteps.h"

namespace gpuc {

using namespace mlir;

bool contractsOneElement(Operation *op) {
  auto matmul = dyn_cast<ir::MatmulOp>(op);
  if (!matmul)
    return false;
  RankedTensorType lhs = ir::tensorType(matmul.getLhs());
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

/// Whether the value's elements are squared and summed up, all of them: then by `sum`.
static bool isSquaredNorm(ir::SumOp sum, Value value) {
  auto square = sum.getOperand().getDefiningOp<ir::MulOp>();
  return square && square.getLhs() == value && square.getRhs() == value &&
         static_cast<int64_t>(sum.getDims().size()) == ir::tensorType(value).getRank();
}

static Value squaredNorm(OpBuilder &builder, Location location, Value value) {
  Value squares = ir::MulOp::create(builder, location, value, value);
  return ir::SumOp::create(builder, location, squares,
                           llvm::to_vector(llvm::seq<int64_t>(0, ir::tensorType(value).getRank())));
}

/// Σ (aᵢ bⱼ)² = Σ aᵢ² · Σ bⱼ²: two short sums in the place of a long one.
static void factorNorms(ir::MatmulOp matmul) {
  if (matmul.getType().getRank() != 2)
    return;
  SmallVector<ir::SumOp> norms;
  for (Operation *square : matmul->getUsers())
    for (Operation *user : square->getUsers())
      if (auto sum = dyn_cast<ir::SumOp>(user);
          sum && isSquaredNorm(sum, matmul) && !llvm::is_contained(norms, sum))
        norms.push_back(sum);
  for (ir::SumOp sum : norms) {
    OpBuilder builder(sum);
    Value factors =
        ir::MulOp::create(builder, sum.getLoc(), squaredNorm(builder, sum.getLoc(), matmul.getLhs()),
                          squaredNorm(builder, sum.getLoc(), matmul.getRhs()));
    Operation *square = sum.getOperand().getDefiningOp();
    sum.replaceAllUsesWith(factors);
    sum.erase();
    if (square->use_empty())
      square->erase();
  }
}

void multiplyOuterProducts(Block &block) {
  for (ir::MatmulOp matmul : llvm::to_vector(block.getOps<ir::MatmulOp>()))
    if (contractsOneElement(matmul)) {
      factorNorms(matmul);
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
