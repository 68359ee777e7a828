//===- ChannelsFirst.cpp - Back to the order that models have ---------------===//

#include "passes/layout/conv/Channels.h"

#include "dialects/gpuc/Windows.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace gpuc {

template <typename Op> static Operation *between(Op op) {
  if (!op.getChannelsLast())
    return nullptr;
  OpBuilder builder(op);
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, ir::TransposeOp::create(builder, op.getLoc(), operand, ir::kToChannelsFirst));
  auto made = cast<Op>(builder.clone(*op.getOperation(), mapping));
  made.setChannelsLast(false);
  for (auto [before, after] : llvm::zip_equal(op->getResults(), made->getResults())) {
    after.setType(ir::permuted(cast<RankedTensorType>(before.getType()), ir::kToChannelsFirst));
    before.replaceAllUsesWith(
        ir::TransposeOp::create(builder, op.getLoc(), after, ir::kToChannelsLast).getResult());
  }
  return op;
}

void transposeToChannelsFirst(Block &block, bool poolings) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    Operation *old = TypeSwitch<Operation *, Operation *>(&op)
                         .Case<ir::Conv2dOp, ir::Conv2dInputGradientOp, ir::Conv2dFilterGradientOp>(
                             [](auto convolution) { return between(convolution); })
                         .Case<ir::MaxPool2dOp, ir::MaxPool2dGradientOp, ir::MaxPool2dGatherOp,
                               ir::AvgPool2dOp, ir::AvgPool2dGradientOp>(
                             [&](auto pooling) { return poolings ? between(pooling) : nullptr; })
                         .Default([](Operation *) { return nullptr; });
    if (old)
      old->erase();
  }
}

} // namespace gpuc
