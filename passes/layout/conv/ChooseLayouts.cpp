//===- ChooseLayouts.cpp - Channels last, where that pays -------------------===//
//
// What transposing a group of images moves, and what it saves: bytes and kernels, from shapes alone; a copy
// counts its bytes twice, as it reads and writes them.
//
// Saved: with channels first, cuDNN's engines on tensor cores transpose all three tensors of a convolution
// in its workspace. With channels last they read them where they lie, if the channels fill 16 bytes; else
// they are copied either way.
//
// Left: a transpose costs nothing where a kernel takes it in, which then reads or writes in the other order.
// It is a copy where it stands between what no kernel computes: arguments, library calls, reshapes, results.
// A sum over images and pixels takes two kernels more, for it is cut in two, and its neighbours, which with
// channels first are in one kernel with it, are not.
//
// It pays if it moves fewer bytes, and is faster by the target's figures.
//
//===----------------------------------------------------------------------===//

#include "passes/layout/conv/Channels.h"

#include "dialects/gpuc/Convolutions.h"
#include "passes/base/Decisions.h"
#include "passes/codegen/Codegen.h"

using namespace mlir;

namespace gpuc {
namespace {

//===----------------------------------------------------------------------===//
// The cost
//===----------------------------------------------------------------------===//

struct Work {
  int64_t bytes = 0, kernels = 0;

  double nanoseconds(const TargetDescription &device) const {
    return static_cast<double>(bytes) / device.bytesPerNanosecond +
           static_cast<double>(kernels) * device.commandNanoseconds;
  }
  void addCopy(Value value) {
    bytes += 2 * ir::sizeInBytes(value.getType());
    ++kernels;
  }
  std::string text() const {
    return std::to_string(kernels) + " kernels and " + std::to_string(bytes) + " bytes";
  }
};

/// Whether a kernel computes the op, and so may read or write in any order.
bool isOfKernel(Operation *op) { return op && isKernelOp(op); }

/// Adds up what is left of a group.
class Counter {
public:
  Counter(const LayoutGroup &group, Work &left) : group_(group), left_(left) {}

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
  Work &left_;
};

/// Whether channels, and of a filter its outputs, too, fill what tensor cores load at once.
bool fillsCores(Value value, bool isFilter, int64_t coreBytes) {
  auto type = cast<RankedTensorType>(value.getType());
  auto fills = [&](int64_t dim) {
    return type.getDimSize(dim) * ir::elementBytes(type.getElementType()) % coreBytes == 0;
  };
  return fills(1) && (!isFilter || fills(0));
}

/// Of a group: the work that cuDNN does not do, and that transposes do.
struct LayoutCost {
  Work saved, left;

  LayoutCost(const LayoutGroup &group, const TargetDescription &device) {
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
  bool pays(const TargetDescription &device) const {
    return left.bytes < saved.bytes && left.nanoseconds(device) < saved.nanoseconds(device);
  }
};

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// Which layout a convolution gets, and why.
struct Verdict {
  StringRef layout = "channels_first";
  std::string why = "not on tensor cores";
};

} // namespace

void chooseLayouts(Block &block, const TargetDescription &device, SmallVectorImpl<Attribute> &decisions) {
  DenseMap<Operation *, Verdict> verdicts;
  SmallVector<LayoutGroup> chosen;
  for (LayoutGroup &group : findLayoutGroups(block)) {
    LayoutCost cost(group, device);
    const bool pays = cost.pays(device);
    for (Operation *convolution : group.convolutions)
      verdicts[convolution] = {pays ? "channels_last" : "channels_first",
                               "transposes take " + cost.left.text() + ", cuDNN's own " + cost.saved.text()};
    if (pays)
      chosen.push_back(std::move(group));
  }
  for (Operation &op : block)
    if (ir::isConvolution(&op)) {
      const Verdict verdict = verdicts.lookup(&op);
      decisions.push_back(decisionOver(&op, {verdict.layout, /*from=*/"", /*to=*/"", verdict.why}));
    }
  transposeToChannelsLast(block, chosen);
}

} // namespace gpuc
