//===- Permuted.cpp - Ops of permuted operands -------------------------------===//

#include "passes/layout/conv/Channels.h"

#include "dialects/gpuc/Windows.h"
#include "passes/codegen/Codegen.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace gpuc {

/// The permutation that sorts these numbers.
static SmallVector<int64_t> sortingOf(ArrayRef<int64_t> numbers) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, numbers.size()));
  llvm::sort(order, [&](int64_t a, int64_t b) { return numbers[a] < numbers[b]; });
  return order;
}

bool isMadeAnew(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast_or_null<ir::ConstantOp>(op))
    return constant.getSplat() != nullptr;
  return isa_and_present<ir::IotaOp, ir::BroadcastOp>(op);
}

Value madeAnew(OpBuilder &builder, Value value, ArrayRef<int64_t> permutation) {
  Operation *op = value.getDefiningOp();
  const RankedTensorType type = ir::permuted(ir::tensorType(value), permutation);
  const SmallVector<int64_t> placeOf = invertPermutationVector(permutation);
  if (auto broadcast = dyn_cast<ir::BroadcastOp>(op)) {
    auto dims = llvm::map_to_vector(broadcast.getDims(), [&](int64_t dim) { return placeOf[dim]; });
    Value operand = broadcast.getOperand();
    if (!llvm::is_sorted(dims))
      operand = ir::TransposeOp::create(builder, op->getLoc(), operand, sortingOf(dims));
    llvm::sort(dims);
    return ir::BroadcastOp::create(builder, op->getLoc(), type, operand, dims);
  }
  Operation *made = builder.clone(*op);
  made->getResult(0).setType(type);
  if (auto iota = dyn_cast<ir::IotaOp>(made))
    iota.setDim(placeOf[iota.getDim()]);
  return made->getResult(0);
}

Value fold(OpBuilder &builder, Operation *reduction, Value operand, ArrayRef<int64_t> dims) {
  IRMapping mapping;
  mapping.map(reduction->getOperand(0), operand);
  Operation *made = builder.clone(*reduction, mapping);
  if (auto argmax = dyn_cast<ir::ArgmaxOp>(made))
    argmax.setDim(dims.front());
  else
    made->setAttr("dims", builder.getDenseI64ArrayAttr(dims));
  SmallVector<int64_t> shape;
  for (auto [dim, extent] : llvm::enumerate(ir::tensorType(operand).getShape()))
    if (!llvm::is_contained(dims, dim))
      shape.push_back(extent);
  made->getResult(0).setType(ir::tensorType(reduction->getResult(0)).clone(shape));
  return made->getResult(0);
}

Value foldPermuted(OpBuilder &builder, Operation *reduction, Value operand, ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> folded, kept; // where they lie in the operand
  for (auto [dim, place] : llvm::enumerate(invertPermutationVector(permutation)))
    (llvm::is_contained(foldedDims(reduction), dim) ? folded : kept).push_back(place);
  llvm::sort(folded);
  Value result = fold(builder, reduction, operand, folded);
  if (llvm::is_sorted(kept))
    return result;
  // Of the dimensions that are left kept[i], which is to be dimension i, is the …th.
  return ir::TransposeOp::create(builder, reduction->getLoc(), result,
                                 invertPermutationVector(sortingOf(kept)));
}

} // namespace gpuc
