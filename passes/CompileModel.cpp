//===- CompileModel.cpp - The compiler as a function of plain data ----------===//

#include "passes/CompileModel.h"
#include "passes/Compiler.h"

#include <chrono>

namespace gpuc {
namespace {

CompilerOptions optionsOf(const CompileRequest &request) {
  CompilerOptions options;
  options.train.recipe = request.recipe;
  options.train.checkNumerics = request.checkNumerics;
  options.train.predict = request.predict;
  options.train.checkpoint = !request.checkpoint.empty() ? request.checkpoint
                             : request.memoryBudget      ? kBudgetPolicy.str()
                                                         : kModelPolicy.str();
  options.memoryBudget = request.memoryBudget;
  options.target = request.target;
  options.seed = request.seed;
  options.cacheFolder = request.cacheFolder;
  options.emits = true;
  if (request.batch)
    options.train.batch = *request.batch;
  if (request.seed)
    options.train.seed = static_cast<int64_t>(*request.seed);
  return options;
}

/// Entries of lists are checked together.
Status checkRecipe(Compiler &compiler, const CompileRequest &request) {
  std::vector<std::pair<std::string, std::vector<std::string>>> entries;
  for (const auto &[key, text] : request.recipe) {
    if (entries.empty() || entries.back().first != key)
      entries.push_back({key, {}});
    entries.back().second.push_back(text);
  }
  for (const auto &[key, texts] : entries)
    if (Status status = compiler.checkRecipe(key, texts); !status.ok())
      return Status::error(key + ": " + status.message());
  return okStatus();
}

Status checkNumbers(const CompileRequest &request) {
  if (request.batch && *request.batch < 1)
    return errorf("batch is %lld: give at least 1", static_cast<long long>(*request.batch));
  if (request.memoryBudget && *request.memoryBudget < 1)
    return errorf("the memory budget is %lld bytes: give at least 1",
                  static_cast<long long>(*request.memoryBudget));
  return okStatus();
}

Result<Compiled> compile(Compiler &compiler, const CompileRequest &request) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const CompilerOptions options = optionsOf(request);
  GPUC_RETURN_IF_ERROR(checkNumbers(request));
  GPUC_RETURN_IF_ERROR(checkTarget(request.target));
  GPUC_RETURN_IF_ERROR(checkRecipe(compiler, request));
  if (!request.checkpoint.empty())
    GPUC_RETURN_IF_ERROR(compiler.checkCheckpoint(request.checkpoint));
  GPUC_ASSIGN_OR_RETURN(auto module, compiler.parse(request.text, request.name));
  GPUC_RETURN_IF_ERROR(
      compiler.advance(*module, Stage::plan, options, [](mlir::PassManager &) { return okStatus(); }));
  Compiled compiled;
  GPUC_ASSIGN_OR_RETURN(compiled.plan, compiler.emit(*module, options));
  ReportFacts facts;
  facts.compileMilliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
  GPUC_ASSIGN_OR_RETURN(compiled.report, compiler.report(*module, options, facts));
  return compiled;
}

} // namespace

Result<Compiled> compileModel(const CompileRequest &request, Diagnosis *wrong) {
  std::vector<Diagnosis> warnings;
  Compiler compiler([&](Diagnosis warning) { warnings.push_back(std::move(warning)); });
  Result<Compiled> compiled = compile(compiler, request);
  if (compiled.ok())
    compiled->warnings = std::move(warnings);
  else if (wrong)
    *wrong = compiler.diagnosisOf(compiled.status());
  return compiled;
}

} // namespace gpuc
