#include "python/bindings/compile.h"

#include <chrono>

#include "passes/Compiler.h"

namespace gpuc {
namespace {

CompilerOptions optionsOf(const CompileRequest& request) {
  CompilerOptions options;
  options.train.recipe = request.recipe;
  options.train.checkNumerics = request.check_numerics;
  options.train.predict = request.predict;
  options.train.checkpoint = !request.checkpoint.empty() ? request.checkpoint
                             : request.memory_budget     ? kBudgetPolicy.str()
                                                         : kModelPolicy.str();
  options.memoryBudget = request.memory_budget;
  options.target = request.target;
  options.seed = request.seed;
  options.cacheFolder = request.cache_folder;
  if (request.seed) options.train.seed = static_cast<int64_t>(*request.seed);
  return options;
}

/// Entries of lists are checked together.
Status checkRecipe(Compiler& compiler, const CompileRequest& request) {
  std::vector<std::pair<std::string, std::vector<std::string>>> entries;
  for (const auto& [key, text] : request.recipe) {
    if (entries.empty() || entries.back().first != key) entries.push_back({key, {}});
    entries.back().second.push_back(text);
  }
  for (const auto& [key, texts] : entries)
    if (Status status = compiler.checkRecipe(key, texts); !status.ok())
      return Status::error(key + ": " + status.message());
  return okStatus();
}

}  // namespace

Result<Compiled> compileModel(const CompileRequest& request) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const CompilerOptions options = optionsOf(request);
  Compiler compiler;
  GPUC_RETURN_IF_ERROR(checkTarget(request.target));
  GPUC_RETURN_IF_ERROR(checkRecipe(compiler, request));
  if (!request.checkpoint.empty()) GPUC_RETURN_IF_ERROR(compiler.checkCheckpoint(request.checkpoint));
  GPUC_ASSIGN_OR_RETURN(auto module, compiler.parse(request.text, request.name));
  GPUC_RETURN_IF_ERROR(
      compiler.advance(*module, Stage::plan, options, [](mlir::PassManager&) { return okStatus(); }));
  Compiled compiled;
  GPUC_ASSIGN_OR_RETURN(compiled.plan, compiler.emit(*module, options));
  ReportFacts facts;
  facts.compileMilliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
  GPUC_ASSIGN_OR_RETURN(compiled.report, compiler.report(*module, options, facts));
  return compiled;
}

Result<torch::Lowered> lowerGraph(const std::string& json) {
  GPUC_ASSIGN_OR_RETURN(torch::Graph graph, torch::parseGraph(json));
  return torch::lower(graph);
}

std::vector<std::pair<std::string, std::vector<std::string>>> knownOps() { return torch::knownOps(); }

}  // namespace gpuc
