//===- PlanAccess.h - Which bytes of the arena a command touches -------------===//
#pragma once

#include "dialects/plan/PlanOps.h"

#include "runtime/plan/footprint.h"

namespace gpuc {

/// How many iterations may be looked at one by one, where their addresses follow no rule that spares it.
class Effort {
public:
  /// False once all of it is spent: what is asked then has no answer.
  bool spend() { return left_-- > 0; }
  bool isSpent() const { return left_ < 0; }

private:
  int64_t left_ = int64_t{1} << 20;
};

/// What one command reads or writes through one operand, in all iterations of the `loops` around it.
struct Access {
  plan::CommandOpInterface command;
  mlir::Value value; // the command's operand
  bool write;        // of an operand that is added to one access is a write, and one is not
  Role role;
  mlir::Operation *owner; // what the bytes belong to: a variable, a constant, or a buffer of the program
  int64_t first, size;    // bytes of the arena in the first iteration
  llvm::SmallVector<Loop, 2> loops; // outermost first

  /// The smallest range that holds all of it.
  ByteRange bytes() const { return overLoops({first, first + size}, loops); }
  int64_t lower() const { return bytes().begin; }
  int64_t upper() const { return bytes().end; }

  /// Whether it touches every byte of that range.
  bool isDense() const;

  /// The same for a given iteration of the outermost loop.
  Access inIteration(int64_t iteration) const;

  /// Whether two accesses have a byte in common in any of their iterations; yes, too, once the effort is
  /// spent.
  bool meets(const Access &other, Effort &effort) const;

  /// The buffer's name and the range, for messages.
  std::string text() const;
};

/// Resolves buffers to addresses.
class AddressSpace {
public:
  explicit AddressSpace(plan::ArenaOp arena)
      : symbols_(arena->getParentOp()), bytes_(arena.getBytes()), slots_(arena.getSlots()) {}

  /// Appends all accesses of a command, reads first; of a repeat those of the commands in it, in order. `run`
  /// counts the runs of its program, `iterations` those of the repeats around it that are at a fixed one.
  /// Fails, with an error, for a buffer without a place and for bytes outside of buffer or arena.
  mlir::LogicalResult append(plan::CommandOpInterface command, uint64_t run,
                             llvm::ArrayRef<int64_t> iterations,
                             llvm::SmallVectorImpl<Access> &accesses) const;

  /// Where a buffer begins in the given run of its program.
  mlir::FailureOr<int64_t> address(plan::BufferOpInterface buffer, uint64_t run, mlir::Operation *user) const;

  /// Of each input.
  int64_t slots() const { return static_cast<int64_t>(slots_); }

  /// What its bytes belong to: a variable, a constant, or the buffer itself.
  mlir::Operation *ownerOf(plan::BufferOpInterface buffer) const;

private:
  mlir::LogicalResult check(const Access &access, plan::BufferOpInterface buffer, int64_t base) const;

  mlir::SymbolTable symbols_;
  int64_t bytes_;
  uint64_t slots_;
};

} // namespace gpuc
