//===- LiveBuffers.h - How many bytes are live at each time of a program -----===//
#pragma once

#include "passes/placement/LiveBytes.h"
#include "passes/plan/InPlaceChains.h"

namespace gpuc {

/// What a program's buffers take at each position of its main stream, those that lie over one another as one.
class LiveBuffers {
public:
  LiveBuffers(mlir::ModuleOp module, plan::ProgramOp program, const Lifetimes &lifetimes);

  /// The most bytes at any of the positions [lower, upper).
  int64_t most(int64_t lower, int64_t upper) const { return live_.most(lower, upper); }

  /// Lets what the commands, of which the first is at `from`, need live until `to`, unless more bytes than
  /// there were ever live at once would be: then it changes nothing and returns false.
  bool extend(llvm::ArrayRef<plan::CommandOpInterface> commands, int64_t from, int64_t to);
  /// Whether it would; if so, then also until any time before `to`.
  bool canExtend(llvm::ArrayRef<plan::CommandOpInterface> commands, int64_t from, int64_t to);

  /// Counts a buffer that lies over no other one as if it were not there, and again as it was.
  void remove(plan::AllocOp buffer) { count(buffer, -1); }
  void restore(plan::AllocOp buffer) { count(buffer, 1); }

private:
  void count(plan::AllocOp buffer, int64_t times);

  struct Span {
    int64_t lower, upper, bytes;
  };
  using FormerEnds = llvm::SmallVector<std::pair<Span *, int64_t>>;

  FormerEnds lengthen(llvm::ArrayRef<plan::CommandOpInterface> commands, int64_t to);
  void shorten(const FormerEnds &former);

  InPlaceChains chains_;
  llvm::MapVector<mlir::Operation *, Span> spans_; ///< By the chain's leader.
  placement::LiveBytes live_;
  int64_t peak_ = 0;
};

} // namespace gpuc
