// What gpuc-compile and gpuc-simulate ask alike: which recipe is meant, and what times are predicted by.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/Compiler.h"
#include "runtime/base/flags.h"

namespace gpuc {

/// A flag that says an entry of the recipe. That of a list may be given several times, once for each spec.
/// The name of a spec that has but one is not written: `spec` is.
struct RecipeFlag {
  std::string name, entry, valueName, help;
  bool isList = false;
  std::string spec = {};
  bool isFlag = false;  // without a value
  std::optional<std::string> text = {};
  std::vector<std::string> specs = {};
  bool isGiven = false;

  void declare(CommandLine& cli);
  std::vector<std::string> texts() const;
};

/// Of all but how ranks train.
std::vector<RecipeFlag> recipeFlags();

/// What is wrong with what was given.
Status checkRecipeFlags(const std::vector<RecipeFlag>& flags);

/// What was given, as the compiler's options.
void addRecipe(const std::vector<RecipeFlag>& flags, CompilerOptions& options);

/// --rates and --profile-in.
struct PredictionFlags {
  std::optional<std::string> rates, profile;

  void declare(CommandLine& cli);
  bool namesRates() const { return rates && rates != "none"; }

  /// Reads what predictions go by, where anything is predicted or a file is named. A file that was named has
  /// to do; what is wrong with rates that only lie there is said.
  Status take(bool predicts, CompilerOptions& options) const;

 private:
  Status takeRates(bool predicts, CompilerOptions& options) const;
  Status takeProfile(CompilerOptions& options) const;
};

/// Of the first bytes of other files a parser could only say that they are no `.mlir`.
Status checkIsModel(std::string_view bytes, const std::string& name);

}  // namespace gpuc
