//===- BlockGraph.h - What a choice of values costs, as an estimate ------------===//
//
// A block as plain data, its commands in the order in which they run and the values that they read and write,
// and by what is kept of its forward pass memory and time: in microseconds instead of the tenths of a second
// that a plan takes, so that a search weighs thousands of choices. It knows no placement, and of what kernels
// write over their operands only a guess: whoever promises something makes the plan.
//
// A value that is dropped dies with its last forward reader. The op that computes it runs once more, directly
// before the first command that reads it and is backward or itself run again; what it reads comes before it
// in the same way, in the order of its operands. No op runs more than twice.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <vector>

namespace gpuc {

class BlockGraph {
public:
  struct Op {
    llvm::SmallVector<unsigned, 4> reads, writes; ///< Numbers of values, of each once.
    double nanoseconds = 0;
    bool backward = false;
    bool mayOverwrite = false; ///< What it reads for the last time.
  };

  BlockGraph() = default;
  /// The first values may be dropped, as many as `bytesAgain` has numbers: what each takes then, itself and
  /// its copy. That is as much as else, or less where only a part is there at a time, which holds of values
  /// that backward commands alone read. What an op reads stands before it, or outside; the results of an op
  /// can all be dropped, or none.
  BlockGraph(std::vector<Op> ops, std::vector<int64_t> bytes, std::vector<int64_t> bytesAgain);

  /// The values that may be kept or not.
  unsigned size() const { return producers_.size(); }
  int64_t bytes(unsigned value) const { return bytes_[value]; }
  int64_t bytesAgain(unsigned value) const { return bytesAgain_[value]; }
  /// Whether the backward pass reads it: what nothing but copies read is worth no memory by itself.
  bool isResidual(unsigned value) const { return residuals_.test(value); }
  /// What it takes to compute the op again whose result it is.
  double nanoseconds(unsigned value) const { return ops_[producers_[value]].nanoseconds; }

  bool canRunAgain(const Op &op) const { return !op.writes.empty() && op.writes.front() < size(); }

  llvm::ArrayRef<Op> ops() const { return ops_; }
  /// Of all values, those included that cannot be dropped.
  llvm::ArrayRef<int64_t> allBytes() const { return bytes_; }
  unsigned producer(unsigned value) const { return producers_[value]; }

  struct Outcome {
    int64_t peak = 0;       ///< The most bytes that are live at once.
    double excess = 0;      ///< Of bytes above the limit, over all commands.
    double nanoseconds = 0; ///< To compute again what is not kept.
    int64_t commands = 0;   ///< That were looked at: what the answer took.
  };
  /// Fills `crossing`, if it is given, with the values that live where the limit is exceeded.
  Outcome simulate(const llvm::BitVector &kept, int64_t limit, llvm::BitVector *crossing = nullptr) const;

  /// The same block in the order that plan-order would choose, if that has a lower peak with everything kept.
  BlockGraph ordered() const;

private:
  class Run;

  std::vector<unsigned> schedule(bool onlyWhatFrees) const;
  BlockGraph inOrder(llvm::ArrayRef<unsigned> order) const;

  std::vector<Op> ops_;
  std::vector<int64_t> bytes_, bytesAgain_;
  std::vector<unsigned> producers_; ///< The ops of the values that may be dropped.
  llvm::BitVector residuals_;
};

} // namespace gpuc
