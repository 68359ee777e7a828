//===- OrderProblem.h - A block's commands as an ordering problem -----------===//
#pragma once

#include "passes/ordering/Problem.h"
#include "passes/plan/CommandGraph.h"

#include "mlir/IR/SymbolTable.h"

namespace gpuc {

/// What the order of a program's commands decides: when the buffers live that are needed in one iteration of
/// a loop only, or in the program by itself. Bytes are counted as placement will count them.
class OrderProblems {
public:
  OrderProblems(mlir::ModuleOp module, plan::ProgramOp program);

  /// That of the block's commands. Loops among them are as they stand: what is live in one of their
  /// iterations is the loop's scratch.
  ordering::Problem of(const CommandGraph &graph, mlir::Block &block);

private:
  int64_t scratchOf(plan::LoopOpInterface loop);
  std::vector<std::pair<size_t, size_t>> overlaysOf(mlir::Operation *command,
                                                    const llvm::DenseMap<mlir::Operation *, size_t> &numbers);
  llvm::SetVector<mlir::Operation *> buffersOf(plan::CommandOpInterface command, mlir::Block &block);

  mlir::SymbolTable kernels_;
  llvm::DenseMap<mlir::Operation *, mlir::Block *> homes_; ///< In whose order a buffer has its place.
};

} // namespace gpuc
