//===- HappensBefore.h - The order that streams and events guarantee --------===//
#pragma once

#include "dialects/plan/PlanOps.h"

namespace gpuc {

/// Whether other streams can be ordered between the commands of a repeat.
bool hasEvents(plan::RepeatOp repeat);

/// One execution of one command; of a repeat without events, all that it repeats.
struct Execution {
  plan::CommandOpInterface command;
  unsigned stream;                       // a number for each stream name in the module
  unsigned step;                         // which run of a program this belongs to
  llvm::SmallVector<int64_t> iterations; // of the repeats around it, outermost first
};

/// Executions of commands and the partial order between them: those of one stream follow one another; a wait
/// follows the record that it waits for; a program begins when the program before it has ended on all
/// streams, unless it is the same program again.
class HappensBefore {
public:
  /// Runs the program once more after what has been added. Fails, with an error, if its repeats wait for
  /// events or record them in more iterations than one can look at.
  mlir::LogicalResult addStep(plan::ProgramOp program);

  /// Computes the order. Fails, with an error at the wait, if waits form a cycle and would never return.
  mlir::LogicalResult finish();

  const std::vector<Execution> &executions() const { return all; }

  /// Executions in an order that respects the partial order. Valid after finish().
  llvm::ArrayRef<unsigned> order() const { return topological; }

  /// Whether `first` has ended when `second` begins, however the streams run. Valid after finish().
  bool precedes(unsigned first, unsigned second) const {
    return first != second && clocks[second][all[first].stream] >= positions[first];
  }

private:
  mlir::LogicalResult addBlock(mlir::Block &block, unsigned stream, llvm::SmallVector<int64_t> &iterations);
  void addExecution(plan::CommandOpInterface command, unsigned stream, llvm::ArrayRef<int64_t> iterations);
  unsigned streamNumber(llvm::StringRef name);

  std::vector<Execution> all;
  std::vector<llvm::SmallVector<unsigned>> predecessors;
  std::vector<int64_t> positions; // within the stream, from 1
  std::vector<llvm::SmallVector<int64_t>>
      clocks; // for each stream: the last position that precedes, or is, this one
  std::vector<unsigned> topological;
  llvm::StringMap<unsigned> streams;
  std::vector<std::optional<unsigned>> lastOnStream;
  llvm::DenseMap<mlir::Value, std::vector<unsigned>> records; // of an event, by execution
  llvm::DenseMap<mlir::Value, std::vector<unsigned>> waits;
  mlir::Operation *currentProgram = nullptr;
  std::vector<unsigned> barrier; // what the current program's commands follow
  unsigned steps = 0;
};

} // namespace gpuc
