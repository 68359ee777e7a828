//===- PlanContents.h - Whose bytes lie where as a plan runs -----------------===//
#pragma once

#include "passes/plan/PlanAccess.h"

#include <map>

namespace gpuc {

/// Executes commands on memory that holds, instead of numbers, whose they are and since which step. A read
/// must find bytes that the buffer which it names has written in this step; a variable's and a constant's
/// bytes are their own from the start.
class PlanContents {
public:
  PlanContents(mlir::ModuleOp module, const AddressSpace &addresses, Effort &effort);

  /// The step that is being executed; `run` and `iterations` as for AddressSpace.
  struct Moment {
    unsigned step;
    uint64_t run;
    llvm::SmallVector<int64_t> iterations;
  };

  /// Executes a command; fails, with an error, if a read finds something else.
  mlir::LogicalResult execute(plan::CommandOpInterface command, const Moment &moment);

  /// Checks bytes that `reader` needs.
  mlir::LogicalResult check(int64_t lower, int64_t upper, mlir::Operation *owner, unsigned step,
                            mlir::Operation *reader, llvm::StringRef name) const;

private:
  struct Content {
    mlir::Operation *owner;
    unsigned step;
  };

  mlir::LogicalResult executeRepeat(plan::LoopOpInterface repeat, Moment moment);
  bool isRegular(llvm::ArrayRef<Access> accesses, llvm::ArrayRef<size_t> positions, unsigned step) const;
  bool staysFound(const Access &read, size_t position, llvm::ArrayRef<Access> accesses,
                  llvm::ArrayRef<size_t> positions, unsigned step) const;
  std::optional<Content> findOther(int64_t lower, int64_t upper, mlir::Operation *owner, unsigned step) const;
  void write(int64_t lower, int64_t upper, Content content);

  const AddressSpace &addresses_;
  Effort &effort_;
  std::map<int64_t, Content> contents_; // from this byte on, up to the next entry
};

} // namespace gpuc
