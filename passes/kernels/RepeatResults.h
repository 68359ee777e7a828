//===- RepeatResults.h - Results that their readers compute themselves ------===//
//
// The last step of gpuc-fuse. A value that crosses from one kernel to another is stored and loaded, and if
// the other belongs to the backward pass, its bytes wait for it. Where its readers can compute it from what
// they may read anyway, and by FuseCost.h that costs less, they do, each for itself. Two choices are tried
// for each result of a kernel:
//
//   - all of its readers compute it, and it is stored no more;
//   - those of the backward pass do, and it lives no longer than the forward pass reads it.
//
// On a GPU a kernel of the backward pass does so, too, beside others that read it, if it reads less: it has
// at hand what a norm was computed from, and so needs no result of its relu.
//
// Where others of the backward pass read the result, too, on a CPU, as the product that gives a weight's
// gradient does, a third choice is left: one kernel there computes it and writes it again for them
// (base/WrittenAgain.h). They wait for it then, and so it must not wait for them; heights in the graph of
// kernels, taken before anything is repeated, fall along each of its edges, new ones as well, and so there is
// no cycle.
//
// Such a copy has the ops of what it repeats, so that no bit changes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/kernels/FuseClusters.h"
#include "passes/target/TargetDescription.h"

namespace gpuc {

void repeatResults(FuseClusters &clusters, const TargetDescription &device);

} // namespace gpuc
