//===- LayoutCost.cpp - What transposing images moves, and what it saves ----===//

#include "passes/layout/conv/LayoutCost.h"

#include "dialects/gpuc/Convolutions.h"
#include "passes/codegen/Codegen.h"

using namespace mlir;

namespace gpuc {

double LayoutCost::Work::nanoseconds(const TargetDescription &device) const {
  return static_cast<double>(bytes) / device.bytesPerNanosecond +
         static_cast<double>(kernels) * device.commandNanoseconds;
}

void LayoutCost::Work::addCopy(Value value) {
  bytes += 2 * ir::sizeInBytes(value.getType());
  ++kernels;
}

bool foldsAllButChannels(Operation *reduction) {
  return !isa<ir::ArgmaxOp>(reduction) && foldedDims(reduction) == ArrayRef<int64_t>{0, 2, 3};
}

namespace {

/// Whether a kernel computes the op, and so may read or write in any order.
bool isOfKernel(Operation *op) { return op && (isInlinable(op) || isRoot(op)); }

/// Adds up what is left of a group.
class Counter {
public:
  Counter(const LayoutGroup &group, LayoutCost::Work &left) : group_(group), left_(left) {}

  void addImage(Value image) {
    if (group_.ops.contains(image.getDefiningOp()))
      addLeaving(image);
    else
      addEntering(image);
    left_.kernels += 2 * llvm::count_if(image.getUsers(), [](Operation *user) {
                       return isReduction(user) && foldsAllButChannels(user);
                     });
  }

  void addFilter(Operation *convolution) {
    Value filter = filterOf(convolution);
    if (group_.images.contains(filter))
      return;
    bool written = isa<ir::Conv2dFilterGradientOp>(convolution);
    bool absorbed = (written || isOfKernel(filter.getDefiningOp())) &&
                    llvm::all_of(filter.getUsers(), [&](Operation *user) {
                      return written ? isOfKernel(user) : group_.ops.contains(user);
                    });
    if (!absorbed)
      left_.addCopy(filter);
  }

private:
  /// Kernels that read an argument, or what a library made, do so in the other order.
  void addEntering(Value image) {
    bool copied = !isOfKernel(image.getDefiningOp()) && llvm::any_of(image.getUsers(), [&](Operation *user) {
      return group_.ops.contains(user) && ir::isConvolution(user) && filterOf(user) != image;
    });
    if (copied)
      left_.addCopy(image);
  }

  void addLeaving(Value image) {
    bool leaves = false, stays = false;
    for (Operation *user : image.getUsers()) {
      bool inside = group_.ops.contains(user) || isOfKernel(user);
      stays |= inside;
      leaves |= !inside;
    }
    if (leaves && ir::isConvolution(image.getDefiningOp()))
      left_.addCopy(image);
    else if (leaves && stays) // the kernel writes it twice; else in the other order alone
      left_.bytes += ir::sizeInBytes(image.getType());
  }

  const LayoutGroup &group_;
  LayoutCost::Work &left_;
};

/// Whether channels, and of a filter its outputs, too, fill what tensor cores load at once.
bool fillsCores(Value value, bool isFilter, int64_t coreBytes) {
  auto type = cast<RankedTensorType>(value.getType());
  auto fills = [&](int64_t dim) {
    return type.getDimSize(dim) * ir::elementBytes(type.getElementType()) % coreBytes == 0;
  };
  return fills(1) && (!isFilter || fills(0));
}

} // namespace

LayoutCost::LayoutCost(const LayoutGroup &group, const TargetDescription &device) : device(device) {
  Counter counter(group, left);
  for (Value image : group.images)
    counter.addImage(image);
  for (Operation *convolution : group.convolutions) {
    Value filter = filterOf(convolution);
    counter.addFilter(convolution);
    for (Value value : llvm::concat<Value>(convolution->getOperands(), convolution->getResults()))
      if (fillsCores(value, value == filter, device.tensorBytes))
        saved.addCopy(value);
  }
}

} // namespace gpuc
