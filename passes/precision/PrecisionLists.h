//===- PrecisionLists.h - What each op computes in under mixed precision ----===//
//
// The lists are those of PyTorch's autocast (aten/src/ATen/autocast_mode.cpp, CUDA). A row says by which of
// PyTorch's names it goes, so that a test holds it to them, and where it differs, why.
//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace gpuc {

/// What an op does with operands of f32 and of the lower precision.
enum class PrecisionClass {
  lower,   ///< They are cast to the lower precision: products.
  f32,     ///< They are cast to f32: what overflows, or sums.
  promote, ///< The widest type wins; one operand alone keeps its type.
  wide,    ///< Computed in f32, and the result cast to the type that the first operand came in.
  fixed,   ///< Types are what the op says: casts, constants, variables, and what is not of the forward pass.
};

struct PrecisionRule {
  llvm::StringLiteral op; ///< Without `gpuc.`.
  PrecisionClass kind;
  llvm::StringLiteral torch;           ///< PyTorch's names for it, between spaces; empty if it has none.
  llvm::StringLiteral difference = ""; ///< Why it is not done as PyTorch does; empty if it is.
};

/// One rule for each op of the dialect.
llvm::ArrayRef<PrecisionRule> precisionRules();

/// The rule of an op, by its name without `gpuc.`; null if there is none.
const PrecisionRule *findPrecisionRule(llvm::StringRef op);

} // namespace gpuc
