//===- zoo_plan.h - A zoo model as a plan, in this process ------------------===//
#pragma once

#include "frontend/builder/ModelBuilder.h"
#include "passes/Compiler.h"
#include "runtime/plan/plan.h"

#include <string>
#include <vector>

namespace gpuc::test {

/// A model and its keys, as gpuc-model takes them: {"mlp", {"dropout=0.5"}}; and precision=bf16,
/// accumulate=4, data_parallel=true, shard=optimizer, world_size=2, checkpoint=full and memory-budget=BYTES,
/// as gpuc-compile does.
struct ZooSpec {
  std::string model;
  std::vector<std::string> keys;
};

/// "mlp_dropout_0_5", as tests are named.
std::string nameOf(const ZooSpec &spec);

/// What came of compiling a model. The module, whose kernels still stand in it, lives as long as its
/// compiler.
struct ZooPlan {
  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string bytes;
};

Result<std::unique_ptr<ZooPlan>> compileModel(const nn::Model &model, const std::string &target,
                                              PipelineOptions train = {},
                                              std::optional<int64_t> memoryBudget = std::nullopt);

Result<std::unique_ptr<ZooPlan>> compileZooModel(const ZooSpec &spec, const std::string &target);

} // namespace gpuc::test
