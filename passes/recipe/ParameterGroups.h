//===- ParameterGroups.h - Which variable is trained with which numbers ------===//
#pragma once

#include "passes/recipe/Optimizers.h"

#include "llvm/Support/GlobPattern.h"

namespace gpuc {

/// A recipe's optimizer, and what its `groups` change of it for the variables that they name:
/// group(match = "head.*", lr = 1.0e-4). `match` is a pattern of names (`*`, `?`, `[a-z]`) or a tuple of
/// them; the first group that matches a variable holds.
class ParameterGroups {
public:
  /// Reads the recipe's. `trained` are the variables that have a gradient: a group that none of them belongs
  /// to is an error if it is not optional, and so are unknown keys.
  static llvm::FailureOr<ParameterGroups> fromRecipe(ir::RecipeOp recipe,
                                                     llvm::ArrayRef<ir::VariableOp> trained);

  /// Checks the names and patterns of groups; their keys are the optimizer's.
  static llvm::LogicalResult check(mlir::ArrayAttr groups, EmitError emitError);

  /// Of variables that no group names.
  const Optimizer &optimizer() const { return optimizer_; }

  Optimizer optimizerOf(ir::VariableOp variable) const;

  /// The number of a variable's group, from 1 on in the recipe's order; 0 if no group names it.
  size_t numberOf(ir::VariableOp variable) const;

private:
  struct Group {
    std::string text;
    llvm::SmallVector<std::pair<std::string, llvm::GlobPattern>> patterns;
    SpecNumbers numbers;
    bool isOptional = false; ///< It may match nothing that is trained.

    bool matches(llvm::StringRef name) const;
  };

  static llvm::FailureOr<Group> readPatterns(ir::SpecAttr spec, EmitError emitError);
  llvm::LogicalResult checkUse(llvm::ArrayRef<ir::VariableOp> trained, EmitError emitError) const;
  /// The first group with this name, or null.
  const Group *find(llvm::StringRef name) const;

  Optimizer optimizer_;
  llvm::SmallVector<Group> groups_;
};

} // namespace gpuc
