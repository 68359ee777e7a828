//===- TrainingJudge.h - A training module at every level, and its reference --===//
#pragma once

#include "test/gradients/TrainingReference.h"

#include <optional>

namespace gpuc::gradients {

/// What came of running a module.
struct Verdict {
  std::string fault; ///< What is wrong with the compiler, in a line; empty if nothing.
  Coverage coverage; ///< Of the numbers that were compared.
};

/// How a module is compiled: flags of gpuc-compile.
struct CompiledAs {
  int optLevel;
  bool checkNumerics = false;
  std::string checkpoint = "none";
  std::optional<int64_t> memoryBudget = std::nullopt;
  std::string name() const;
};

/// Compiles `text`, a model with a recipe, in each of the ways for the host, and runs, with two threads at
/// -O3 and one below, @init, a few train steps, the last of them with padding rows, @eval_step and @predict.
/// Each starts from the variables that the last way has, on numbers drawn from `seed`. Results and all
/// variables must be those of the reference within its tolerances, and the same bits at all levels above 0,
/// and with checks or recomputation and without. A module that does not compile is a fault, too. Errors: the
/// text is no module with a recipe.
Result<Verdict> judgeTraining(const std::string &text, llvm::ArrayRef<CompiledAs> ways, uint64_t seed = 0);

/// Whether two steps over so many parts of the batch, the second with a row that pads it, are those over all
/// of it: what is drawn hangs on an element's place in the whole batch, and what is divided by is the whole's
/// count. Both are interpreted, and equal within the tolerances of rounding. The model must know no row by
/// another one, and its loss be a sum over rows.
Result<Verdict> judgeParts(const std::string &text, int64_t microbatches, int64_t ranks, uint64_t seed = 0);

} // namespace gpuc::gradients
