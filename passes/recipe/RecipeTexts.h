//===- RecipeTexts.h - What the command line says of a recipe ----------------===//
//
// Flags become entries of the recipe by way of text: gpuc-compile hands on pairs of key and text, the passes'
// option is `KEY=TEXT;KEY=TEXT`.
//
#pragma once

#include "passes/base/Specs.h"

#include <string>
#include <utility>
#include <vector>

namespace gpuc {

/// Key and text of entries; one that is a list has a pair for each of its specs.
using RecipeTexts = std::vector<std::pair<std::string, std::string>>;

/// "optimizer=sgd:lr=0.1;clip_norm=1" and back. A part without `=` is a key with an empty text.
std::string joinRecipeTexts(const RecipeTexts &texts);
RecipeTexts splitRecipeTexts(llvm::StringRef joined);

/// Checks the value of an entry as far as that goes without a model: names, keys and numbers of specs.
llvm::LogicalResult checkRecipeEntry(llvm::StringRef key, mlir::Attribute value, EmitError emitError);

/// The entries by their keys, each checked so. An error names the key.
llvm::FailureOr<mlir::NamedAttrList> recipeEntriesOf(mlir::MLIRContext *context, const RecipeTexts &texts,
                                                     EmitError emitError);

} // namespace gpuc
