// Which of cuDNN's engines computes a convolution.
#pragma once

#include <optional>

#include "runtime/cuda/conv_graph.h"

namespace gpuc::cuda {

/// What an engine must keep to.
struct EngineRules {
  uint64_t workspace_bytes = 0;  // at most
  bool tensor_cores = false;     // f32: they would round its operands to TF32
};

struct ConvEngine {
  DnnDescriptor config, plan;  // the plan refers to the config, which refers to the graph
  uint64_t workspace_bytes = 0;
};

/// The first of cuDNN's suggestions, its fallbacks behind them, that keeps to the rules, gives the same bits
/// whenever it runs, and rounds nothing but the result: no atomic sums, no sums of less than the computed
/// type, no operands cast down, no Winograd tiles beyond 4x4. None if there is none. Errors: whatever else
/// goes wrong.
Result<std::optional<ConvEngine>> chooseEngine(const Dnn& dnn, const DnnTarget& target,
                                               const ConvGraph& graph, const EngineRules& rules);

}  // namespace gpuc::cuda
