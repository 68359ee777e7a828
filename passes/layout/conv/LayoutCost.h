//===- LayoutCost.h - What transposing images moves, and what it saves ------===//
//
// Bytes and kernels, from shapes alone; a copy counts its bytes twice, as it reads and writes them.
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
#pragma once

#include "passes/layout/conv/LayoutGroups.h"
#include "passes/target/TargetDescription.h"

namespace gpuc {

/// Whether the reduction of an image folds all but its channels, which is then done in two.
bool foldsAllButChannels(mlir::Operation *reduction);

struct LayoutCost {
  struct Work {
    int64_t bytes = 0, kernels = 0;

    double nanoseconds(const TargetDescription &device) const;
    void addCopy(mlir::Value value);
  };
  Work saved; ///< That cuDNN does not do.
  Work left;  ///< That transposes do.

  LayoutCost(const LayoutGroup &group, const TargetDescription &device);
  bool pays() const {
    return left.bytes < saved.bytes && left.nanoseconds(device) < saved.nanoseconds(device);
  }

  const TargetDescription &device;
};

} // namespace gpuc
