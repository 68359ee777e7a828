//===- PlanParts.h - What the parts of a parallel touch -----------------------===//
#pragma once

#include "passes/plan/PlanAccess.h"

#include "runtime/plan/parts.h"

namespace gpuc {

/// The rows by which a command may be cut (runtime/plan/roles.h), of a launch those that its kernel says; 0:
/// it is executed whole.
int64_t rowsOf(plan::CommandOpInterface command, const mlir::SymbolTable &kernels);

/// Commands that a parallel executes, or could.
class PlanParts {
public:
  /// Commands of a loop that has parts, or is to have some: views move with them as with its iterations.
  PlanParts(const AddressSpace &addresses, const mlir::SymbolTable &kernels, plan::LoopOpInterface loop);

  /// Adds its commands. Fails, with an error, for a buffer without a place.
  mlir::LogicalResult add(mlir::Block &commands);

  /// The rows that all commands have in common, of which any divisor cuts them; 0 or 1: they cannot be cut.
  int64_t rows() const { return rows_; }

  /// Why no one may execute such parts at once: two operands, by name. None if they may.
  std::optional<std::string> meeting(Parts parts) const;

private:
  /// What a command touches through one operand in the first part and iteration.
  struct Touch {
    mlir::Value value;
    OperandUse use;
    ByteRange first;
    llvm::SmallVector<Loop, 3> loops; // but for the loop of which they are parts
    int64_t stride;                   // with that
  };

  mlir::LogicalResult add(plan::CommandOpInterface command);
  bool goesByRows(plan::CommandOpInterface command, size_t operand, const OperandUse &use) const;
  std::string textOf(const Touch &touch) const;

  const AddressSpace &addresses_;
  const mlir::SymbolTable &kernels_;
  int64_t tripCount_;
  size_t depth_; // of the parts among the loops around a command
  int64_t rows_ = 0;
  std::vector<Touch> touches_;
};

} // namespace gpuc
