// How cuDNN computes a convolution: its graph, and which of the engines.
#pragma once

#include <optional>
#include <vector>

#include "runtime/cuda/dnn.h"
#include "runtime/plan/access.h"

namespace gpuc::cuda {

/// The GPU for which engines are chosen: that of the handle; or, without one, whatever the properties
/// describe. The second needs no GPU: tests ask the real library what it would do on one.
struct DnnTarget {
  cudnnHandle_t handle = nullptr;
  const DnnDescriptor* properties = nullptr;  // CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR
};

/// A convolution as cuDNN's graph API sees it: an operation graph of one operation, or of one for each thing
/// that is done to its elements before they are stored.
class ConvGraph {
 public:
  // By which a pack of addresses names the tensors.
  static constexpr int64_t kInput = 1, kFilter = 2, kOutput = 3, kBias = 4;

  /// `alignment`: of every address that the command will see, in bytes. Errors: what cuDNN refuses.
  static Result<ConvGraph> create(const Dnn& dnn, const DnnTarget& target, const fb::Conv& conv,
                                  uint32_t alignment);

  const DnnDescriptor& get() const { return graph_; }

 private:
  explicit ConvGraph(const Dnn& dnn) : dnn_(&dnn) {}
  void describeTensors(const fb::Conv& conv, int64_t alignment);
  void describeWindows(const fb::Conv& conv);
  void describeBias(const fb::Conv& conv, int64_t alignment);
  void describeConvolution(const fb::Conv& conv);
  void describeEpilogue(const fb::Conv& conv);
  Status describeGraph(const DnnTarget& target);

  const Dnn* dnn_;
  cudnnDataType_t type_ = CUDNN_DATA_FLOAT;
  DnnDescriptor input_, filter_, output_, windows_, graph_;
  DnnDescriptor sum_, bias_, biased_;  // where a bias follows; the first and the last are never stored
  std::vector<DnnDescriptor> functions_, operations_;
};

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
