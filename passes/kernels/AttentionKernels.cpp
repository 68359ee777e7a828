//===- AttentionKernels.cpp - Attention in kernels of its own ---------------===//

#include "passes/kernels/FuseSteps.h"

#include "passes/base/AttentionViews.h"

using namespace mlir;

namespace gpuc {

/// A result that is written in a transpose's order is read back through the inverse one, by who reads it in
/// its own order; so the kernel need yield but one of the two.
static void readThroughTranspose(OpResult result) {
  ir::TransposeOp transpose = transposeOfResult(result);
  if (!transpose)
    return;
  SmallVector<int64_t> inverse(transpose.getPermutation().size());
  for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
    inverse[from] = to;
  for (OpOperand &use : llvm::make_early_inc_range(result.getUses())) {
    Operation *reader = use.getOwner();
    if (reader == transpose)
      continue;
    OpBuilder builder(reader);
    use.set(ir::TransposeOp::create(builder, reader->getLoc(), result.getType(), transpose.getResult(),
                                    builder.getDenseI64ArrayAttr(inverse)));
  }
}

namespace {

class AttentionKernels {
public:
  AttentionKernels(Operation *op, KernelNames &names) : op_(op), names_(names) {}

  void build() {
    for (OpResult result : op_->getResults())
      readThroughTranspose(result);
    if (isa<ir::AttentionOp>(op_)) {
      buildKernel(op_, op_->getResults());
      return;
    }
    Operation *ofQuery = OpBuilder(op_).clone(*op_);
    op_->getResult(0).replaceAllUsesWith(ofQuery->getResult(0));
    buildKernel(ofQuery, ofQuery->getResults().take_front(1));
    buildKernel(op_, op_->getResults().slice(1, 2));
  }

private:
  /// What stands between the op's operands and the tensors that they are views of.
  static llvm::SmallPtrSet<Operation *, 8> viewsOf(Operation *op) {
    llvm::SmallPtrSet<Operation *, 8> views;
    for (OpOperand &operand : op->getOpOperands())
      if (isReadStrided(operand))
        for (Value value = operand.get(), base = viewOf(value).base; value != base;) {
          Operation *view = value.getDefiningOp();
          views.insert(view);
          value = view->getOperand(0);
        }
    return views;
  }

  /// The kernel that yields what is read of `results`.
  void buildKernel(Operation *op, ResultRange results) {
    SmallVector<Operation *> ops{op};
    SmallVector<Value> outputs;
    for (OpResult result : results) {
      ir::TransposeOp transpose = transposeOfResult(result);
      if (transpose)
        ops.push_back(transpose);
      if (!result.use_empty())
        outputs.push_back(transpose ? Value(transpose.getResult()) : Value(result));
    }
    if (!outputs.empty()) {
      llvm::SmallPtrSet<Operation *, 8> views = viewsOf(op);
      FusedKernel kernel(ops, outputs, [&](Operation *view) { return views.contains(view); });
      OpBuilder builder(op);
      if (dropsByCounters(op))
        for (StringRef counter : {"seed", "step"})
          kernel.addArgument(ir::ReadOp::create(builder, op->getLoc(),
                                                RankedTensorType::get({}, builder.getI64Type()), counter));
      builder.setInsertionPointAfter(op);
      kernel.build(builder, names_.nameFor(op));
    }
    for (Operation *part : llvm::reverse(ops))
      part->erase();
  }

  Operation *op_;
  KernelNames &names_;
};

} // namespace

void buildAttentionKernels(Block &block, KernelNames &names) {
  SmallVector<Operation *> attentions;
  for (Operation &op : block)
    if (isAttention(&op) && hasCudaAttention(&op))
      attentions.push_back(&op);
  for (Operation *op : attentions)
    AttentionKernels(op, names).build();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isa<ir::TransposeOp, ir::SliceOp, ir::ReshapeOp>(op) && op.use_empty())
      op.erase(); // what kernels have copies of
}

} // namespace gpuc
