//===- Optimizers.h - What a recipe's optimizer does to a variable -----------===//
//
// Names, keys and defaults are PyTorch's (torch.optim) where PyTorch has the optimizer, so are the names of
// slots.
//
#pragma once

#include "passes/base/Specs.h"

namespace gpuc {

struct OptimizerForm;

/// A tensor that an optimizer keeps for a variable, and the number in it at first.
struct OptimizerSlot {
  llvm::StringRef name;
  mlir::Type type;
  double initial = 0;
};

/// What one update reads. `slots` stand in the order of Optimizer::slots(); `step` counts from 1
/// (tensor<i64>), `lr` is a tensor<f64>, and so is each of the numbers that are `given` in place of the
/// optimizer's own.
struct UpdateOperands {
  mlir::Value weight, gradient;
  llvm::SmallVector<mlir::Value> slots;
  mlir::Value step, lr;
  llvm::SmallVector<mlir::Value> given;
  llvm::SmallVector<llvm::StringRef> givenNumbers;
};

/// An optimizer with all its numbers.
class Optimizer {
public:
  /// Unknown names and keys, and values that PyTorch refuses, are errors.
  static llvm::FailureOr<Optimizer> fromSpec(ir::SpecAttr spec, EmitError emitError);

  /// The numbers that `spec` gives for keys of this optimizer, whatever its name; those of `others` are none
  /// of them. Checked as in fromSpec().
  llvm::FailureOr<SpecNumbers> readGroup(ir::SpecAttr spec, llvm::ArrayRef<llvm::StringRef> others,
                                         EmitError emitError) const;

  /// The optimizer of a variable of this type for which `group` gives other numbers. Where decay is that of
  /// matrices alone, it has no weight decay for others unless the group says so; a muon is adamw for them.
  Optimizer forVariable(mlir::RankedTensorType variable, const SpecNumbers &group) const;

  double learningRate() const { return number("lr"); }

  /// What it keeps for a variable of this type.
  llvm::SmallVector<OptimizerSlot> slots(mlir::RankedTensorType variable) const;

  /// Builds one update; returns the new weight and the new slots.
  llvm::SmallVector<mlir::Value> buildUpdate(mlir::OpBuilder &builder, mlir::Location location,
                                             const UpdateOperands &operands) const;

  /// Those of `names` that are numbers of its own and may be given: one that is 0 may say that a slot is not
  /// there, or a term, and stays.
  llvm::SmallVector<llvm::StringRef> givable(llvm::ArrayRef<llvm::StringRef> names) const;

  /// Whether it computes with a variable as a whole, not each element by itself.
  bool needsWhole() const;

  /// Whether both compute the same of equal operands.
  bool operator==(const Optimizer &other) const { return form_ == other.form_ && numbers_ == other.numbers_; }

  double number(llvm::StringRef key) const { return numbers_.lookup(key); }
  bool flag(llvm::StringRef key) const { return number(key) != 0; }

private:
  /// Whether its numbers go together.
  llvm::LogicalResult check(EmitError emitError) const;

  /// The optimizer under another name, with the numbers of the keys behind `prefix`.
  Optimizer asOther(llvm::StringRef name, llvm::StringRef prefix) const;

  const OptimizerForm *form_ = nullptr;
  SpecNumbers numbers_;
};

} // namespace gpuc
