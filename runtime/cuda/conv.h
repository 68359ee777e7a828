// A plan's convolution through cuDNN: graph, engine and addresses are fixed when the plan is loaded.
#pragma once

#include <compare>
#include <map>
#include <memory>

#include "runtime/cuda/conv_engine.h"

namespace gpuc::cuda {

/// Addresses of one execution, in the order of the command's operands.
struct ConvAddresses {
  CUdeviceptr a = 0, b = 0, c = 0, bias = 0, workspace = 0;  // bias: 0 where there is none
  auto operator<=>(const ConvAddresses&) const = default;
};

class Conv {
 public:
  /// Chooses an engine within the command's workspace. f32 is computed in f32, or in TF32 where the command
  /// says so; f16 and bf16 are summed in f32. `alignment`: of every address that the command will see, in
  /// bytes. Error: nothing fits.
  static Result<std::unique_ptr<Conv>> create(const DnnHandle& handle, const fb::Conv& conv,
                                              uint32_t alignment);

  /// Makes cuDNN's pack of these addresses, so that a step makes none. Twice is once.
  Status bind(const ConvAddresses& addresses);

  /// Enqueues one execution on the handle's stream. Error: the addresses were not bound.
  Status enqueue(const ConvAddresses& addresses) const;

 private:
  Conv(const DnnHandle& handle, fb::ConvKind kind, ConvGraph graph, ConvEngine engine)
      : dnn_(handle.dnn()),
        handle_(handle.get()),
        kind_(kind),
        graph_(std::move(graph)),
        engine_(std::move(engine)) {}

  const Dnn& dnn_;
  cudnnHandle_t handle_;
  fb::ConvKind kind_;
  ConvGraph graph_;
  ConvEngine engine_;
  std::map<ConvAddresses, DnnDescriptor> packs_;
};

}  // namespace gpuc::cuda
