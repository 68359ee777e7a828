//===- TrainingJudge.h - A training module at every level, and its reference --===//
#pragma once

#include "test/gradients/TrainingReference.h"

namespace gpuc::gradients {

/// What came of running a module.
struct Verdict {
  std::string fault; ///< What is wrong with the compiler, in a line; empty if nothing.
  Coverage coverage; ///< Of the numbers that were compared.
};

/// Compiles `text`, a model with a recipe, at each of the levels (-O of gpuc-compile) for the host, and runs,
/// with two threads at -O3 and one below, @init, a few train steps, the last of them with padding rows,
/// @eval_step and @predict. Each starts from the variables that the last level has, on numbers drawn from
/// `seed`. Results and all variables must be those of the reference within its tolerances, and the bits of
/// all levels above 0 the same. A module that does not compile is a fault, too. Errors: the text is no module
/// with a recipe.
Result<Verdict> judgeTraining(const std::string &text, llvm::ArrayRef<int> levels, uint64_t seed = 0);

} // namespace gpuc::gradients
