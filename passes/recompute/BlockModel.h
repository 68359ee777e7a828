//===- BlockModel.h - What a choice of values costs, as an estimate ------------===//
//
// Memory and time of a block by what is kept of its forward pass, in microseconds instead of the tenths of a
// second that a plan takes: with it a search weighs thousands of choices. It knows no placement, and of what
// kernels write over their operands only a guess: whoever promises something makes the plan.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/cost/CostModel.h"
#include "passes/recompute/ForwardPass.h"

#include "llvm/ADT/BitVector.h"

#include <vector>

namespace gpuc {

class BlockModel {
public:
  BlockModel(const ForwardPass &forward, const CostModel &cost);

  /// The values that may be kept or not, in the order in which `forward` computes them.
  unsigned size() const { return producers_.size(); }
  int64_t bytes(unsigned value) const { return bytes_[value]; }
  /// Whether the backward pass reads it: what nothing but copies read is worth no memory by itself.
  bool isResidual(unsigned value) const { return residuals_.test(value); }
  /// What it takes to compute the op again whose result it is.
  double nanoseconds(unsigned value) const { return ops_[producers_[value]].nanoseconds; }

  struct Outcome {
    int64_t peak = 0;       ///< The most bytes that are live at once.
    double excess = 0;      ///< Of bytes above the limit, over all commands.
    double nanoseconds = 0; ///< To compute again what is not kept.
    int64_t commands = 0;   ///< That were looked at: what the answer took.
  };
  /// Fills `crossing`, if it is given, with the values that live where the limit is exceeded.
  Outcome simulate(const llvm::BitVector &kept, int64_t limit, llvm::BitVector *crossing = nullptr) const;

private:
  struct Op {
    llvm::SmallVector<unsigned, 4> reads, writes; ///< Numbers of values, of each once.
    double nanoseconds = 0;
    bool backward = false;
    bool mayOverwrite = false; ///< What it reads for the last time.
  };
  class Run;

  void addOps(const ForwardPass &forward, const CostModel &cost);
  /// The numbers of the ops as plan-order would have them.
  std::vector<unsigned> schedule(bool onlyWhatFrees) const;
  BlockModel inOrder(llvm::ArrayRef<unsigned> order) const;

  std::vector<Op> ops_;             ///< In the order in which they run.
  std::vector<int64_t> bytes_;      ///< Of all values of the block; the first ones may be dropped.
  std::vector<unsigned> producers_; ///< Of those the ops.
  llvm::BitVector residuals_;
};

} // namespace gpuc
