//===- RecipeEntries.h - A recipe's entries, from the command line -----------===//
#pragma once

#include "dialects/gpuc/GpucOps.h"

namespace gpuc::ir {

/// What a recipe may say, in the order in which it is printed.
llvm::SmallVector<llvm::StringRef> recipeKeys();

/// The value of a recipe's entry `key`, of the kind that it has there: a number, a spec (NAME:key=value,…) or
/// a list of specs, which alone takes several texts. Names and keys in specs are not looked at. A failure
/// leaves what is wrong in `error`.
llvm::FailureOr<mlir::Attribute> recipeEntryFromTexts(mlir::MLIRContext *context, llvm::StringRef key,
                                                      llvm::ArrayRef<std::string> texts, std::string &error);

} // namespace gpuc::ir
