//===- zoo_plan.cpp - A zoo model as a plan, in this process ----------------===//

#include "test/end-to-end/zoo_plan.h"

#include "frontend/models/Zoo.h"

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

Result<std::unique_ptr<ZooPlan>> compileModel(const nn::Model &model, const std::string &target) {
  auto plan = std::make_unique<ZooPlan>();
  CompilerOptions options;
  options.target = target;
  GPUC_ASSIGN_OR_RETURN(plan->module, plan->compiler.parse(model.text(), "model.mlir"));
  GPUC_RETURN_IF_ERROR(plan->compiler.advance(*plan->module, Stage::plan, options,
                                              [](mlir::PassManager &) { return okStatus(); }));
  GPUC_ASSIGN_OR_RETURN(plan->bytes, plan->compiler.emit(*plan->module, options));
  return plan;
}

Result<std::unique_ptr<ZooPlan>> compileZooModel(const ZooSpec &spec, const std::string &target) {
  GPUC_ASSIGN_OR_RETURN(nn::Model model, models::buildZooModel(spec.model, spec.keys));
  return compileModel(model, target);
}

} // namespace gpuc::test
