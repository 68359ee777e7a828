//===- zoo_plan.cpp - A zoo model as a plan, in this process ----------------===//

#include "test/end-to-end/zoo_plan.h"

#include "frontend/models/Zoo.h"

#include "llvm/ADT/STLExtras.h"

namespace gpuc::test {

std::string nameOf(const ZooSpec &spec) {
  std::string name = spec.model;
  for (const std::string &key : spec.keys)
    name += "_" + key;
  for (char &letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter)))
      letter = '_';
  return name;
}

Result<std::unique_ptr<ZooPlan>> compileModel(const nn::Model &model, const std::string &target,
                                              PipelineOptions train, std::optional<int64_t> memoryBudget) {
  auto plan = std::make_unique<ZooPlan>();
  CompilerOptions options;
  options.target = target;
  options.train = std::move(train);
  options.memoryBudget = memoryBudget;
  options.cubin = false; // nothing runs it here
  options.cacheFolder = GPUC_TEST_CACHE;
  GPUC_ASSIGN_OR_RETURN(plan->module, plan->compiler.parse(model.text(), "model.mlir"));
  GPUC_RETURN_IF_ERROR(plan->compiler.advance(*plan->module, Stage::plan, options,
                                              [](mlir::PassManager &) { return okStatus(); }));
  GPUC_ASSIGN_OR_RETURN(plan->bytes, plan->compiler.emit(*plan->module, options));
  return plan;
}

Result<std::unique_ptr<ZooPlan>> compileZooModel(const ZooSpec &spec, const std::string &target) {
  std::vector<std::string> keys;
  PipelineOptions train;
  std::optional<int64_t> budget;
  for (llvm::StringRef key : spec.keys) {
    const auto [name, text] = key.split('=');
    if (name == "checkpoint")
      train.checkpoint = text;
    else if (name == "memory-budget")
      budget = std::stoll(text.str()), train.checkpoint = kBudgetPolicy;
    else if (llvm::is_contained({"precision", "accumulate", "data_parallel", "shard", "world_size"}, name))
      train.recipe.emplace_back(name, text);
    else
      keys.push_back(key.str());
  }
  GPUC_ASSIGN_OR_RETURN(nn::Model model, models::buildZooModel(spec.model, keys));
  return compileModel(model, target, std::move(train), budget);
}

} // namespace gpuc::test
