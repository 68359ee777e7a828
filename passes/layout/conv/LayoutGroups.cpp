//===- LayoutGroups.cpp - Images that lie in memory in one order ------------===//

#include "passes/layout/conv/Channels.h"

#include "dialects/gpuc/Convolutions.h"
#include "dialects/gpuc/Tf32.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace gpuc {
namespace {

bool isImage(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 4 && type.hasStaticShape();
}

/// Ops that give as many dimensions as they read, in the same order, whatever that is.
bool keepsOrder(Operation *op) {
  return op->hasTrait<ir::Pointwise>() ||
         isa<ir::MaxPool2dOp, ir::MaxPool2dGradientOp, ir::MaxPool2dGatherOp, ir::AvgPool2dOp,
             ir::AvgPool2dGradientOp, ir::SliceOp, ir::PadOp, ir::ConcatOp, ir::ReverseOp>(op);
}

/// The images that the op links.
SmallVector<Value> linkedBy(Operation *op) {
  SmallVector<Value> images;
  if (!keepsOrder(op) && !(ir::isConvolution(op) && ir::multipliesOnTensorCores(op)))
    return images;
  Value filter = ir::isConvolution(op) ? filterOf(op) : Value();
  for (Value value : llvm::concat<Value>(op->getOperands(), op->getResults())) {
    if (value == filter)
      continue;
    if (!isImage(value))
      return {};
    if (!isMadeAnew(value))
      images.push_back(value);
  }
  return images;
}

} // namespace

Value filterOf(Operation *convolution) {
  return isa<ir::Conv2dFilterGradientOp>(convolution) ? convolution->getResult(0)
                                                      : convolution->getOperand(1);
}

SmallVector<LayoutGroup> findLayoutGroups(Block &block) {
  llvm::EquivalenceClasses<Value> linked;
  for (Operation &op : block)
    if (SmallVector<Value> images = linkedBy(&op); !images.empty())
      for (Value image : images)
        linked.unionSets(images.front(), image);
  llvm::MapVector<Value, LayoutGroup> groups;
  for (Operation &op : block) {
    SmallVector<Value> images = linkedBy(&op);
    if (images.empty())
      continue;
    LayoutGroup &group = groups[linked.getLeaderValue(images.front())];
    group.images.insert_range(images);
    group.ops.insert(&op);
    if (ir::isConvolution(&op))
      group.convolutions.push_back(&op);
  }
  SmallVector<LayoutGroup> found;
  for (auto &[leader, group] : groups)
    if (!group.convolutions.empty())
      found.push_back(std::move(group));
  return found;
}

} // namespace gpuc
