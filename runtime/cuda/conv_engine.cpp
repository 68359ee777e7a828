#include "runtime/cuda/conv_engine.h"

#include <algorithm>
#include <array>

namespace gpuc::cuda {
namespace {

constexpr cudnnBackendNumericalNote_t kNever[] = {
    CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
    CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
    CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13};

/// The engine configurations that cuDNN suggests in this mode, the fastest first as it thinks.
Result<std::vector<DnnDescriptor>> suggestions(const Dnn& dnn, const DnnTarget& target,
                                               const ConvGraph& graph, cudnnBackendHeurMode_t mode) {
  std::vector<DnnDescriptor> configs;
  DnnDescriptor heuristics(dnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.get());
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (target.properties) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  GPUC_ASSIGN_OR_RETURN(bool supported, heuristics.finalizeIfSupported());
  if (!supported) return configs;
  GPUC_ASSIGN_OR_RETURN(int64_t most, heuristics.read(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr));
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < most; ++i) {
    DnnDescriptor config(dnn, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    GPUC_RETURN_IF_ERROR(config.status());
    raw.push_back(config.get());
    configs.push_back(std::move(config));
  }
  // Some of those that were counted turn out not to be there.
  GPUC_ASSIGN_OR_RETURN(int64_t count, heuristics.read(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data()));
  configs.resize(static_cast<size_t>(std::min(count, most)));
  return configs;
}

/// Whether the numbers of the config's engine are those that the rules allow.
Result<bool> keepsNumbers(const Dnn& dnn, const DnnDescriptor& config, const EngineRules& rules) {
  DnnDescriptor engine(dnn, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  GPUC_RETURN_IF_ERROR(engine.status());
  cudnnBackendDescriptor_t raw = engine.get();
  GPUC_RETURN_IF_ERROR(
      config.read(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw).status());
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes = {};
  GPUC_ASSIGN_OR_RETURN(int64_t count, engine.read(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                   CUDNN_TYPE_NUMERICAL_NOTE, notes.size(), notes.data()));
  auto end = notes.begin() + std::min<int64_t>(count, notes.size());
  auto has = [&](cudnnBackendNumericalNote_t note) { return std::find(notes.begin(), end, note) != end; };
  if (!rules.tensor_cores && has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) return false;
  return std::none_of(std::begin(kNever), std::end(kNever), has);
}

/// None if this GPU cannot run it, or if it needs more workspace.
Result<std::optional<ConvEngine>> prepare(const Dnn& dnn, const DnnTarget& target, DnnDescriptor config,
                                          const EngineRules& rules) {
  ConvEngine engine;
  engine.config = std::move(config);
  engine.plan = DnnDescriptor(dnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (target.handle) engine.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  engine.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.config);
  if (target.properties) engine.plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
  GPUC_ASSIGN_OR_RETURN(bool supported, engine.plan.finalizeIfSupported());
  if (!supported) return std::optional<ConvEngine>();
  int64_t bytes = 0;
  GPUC_RETURN_IF_ERROR(
      engine.plan.read(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes).status());
  engine.workspace_bytes = static_cast<uint64_t>(bytes);
  if (engine.workspace_bytes > rules.workspace_bytes) return std::optional<ConvEngine>();
  return std::optional<ConvEngine>(std::move(engine));
}

}  // namespace

Result<std::optional<ConvEngine>> chooseEngine(const Dnn& dnn, const DnnTarget& target,
                                               const ConvGraph& graph, const EngineRules& rules) {
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    GPUC_ASSIGN_OR_RETURN(std::vector<DnnDescriptor> configs, suggestions(dnn, target, graph, mode));
    for (DnnDescriptor& config : configs) {
      GPUC_ASSIGN_OR_RETURN(bool keeps, keepsNumbers(dnn, config, rules));
      if (!keeps) continue;
      GPUC_ASSIGN_OR_RETURN(std::optional<ConvEngine> engine, prepare(dnn, target, std::move(config), rules));
      if (engine) return engine;
    }
  }
  return std::optional<ConvEngine>();
}

}  // namespace gpuc::cuda
