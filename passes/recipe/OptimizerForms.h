//===- OptimizerForms.h - The registry of optimizers -------------------------===//
#pragma once

#include "passes/recipe/Optimizers.h"

namespace gpuc {

/// A slot of the variable's type.
struct SlotForm {
  llvm::StringRef name;
  llvm::StringRef unless0 = ""; ///< It is there unless the number of this key is 0; always if empty.
  llvm::StringRef initial = ""; ///< The key of the number in it at first, which is 0 if empty.
};

/// An optimizer: its keys, its slots, its update; if there is something, what of numbers that each are within
/// their range it refuses; and slots of other types.
struct OptimizerForm {
  SpecForm spec;
  llvm::SmallVector<SlotForm> slots;
  mlir::Operation *(*update)(const Optimizer &, mlir::OpBuilder &, mlir::Location, const UpdateOperands &);
  std::string (*check)(const Optimizer &) = nullptr;
  llvm::SmallVector<OptimizerSlot> (*otherSlots)(mlir::RankedTensorType variable) = nullptr;
  bool needsWhole = false;                                ///< See Optimizer.
  llvm::ArrayRef<llvm::StringRef> (*givable)() = nullptr; ///< Which of its numbers the update may be given.
};

/// In the order of their names.
llvm::ArrayRef<OptimizerForm> optimizerForms();

/// What weight decay is of, the number of the key `decay`: all variables, or those of rank 2 and more.
constexpr double kDecayAll = 0, kDecayMatrices = 1;

/// The flag by which an optimizer climbs: it takes the gradient's opposite.
constexpr llvm::StringLiteral kMaximize = "maximize";

} // namespace gpuc
