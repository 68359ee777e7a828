// A plan's convolution through cuDNN: graph, engine and addresses are fixed when the plan is loaded.
#pragma once

#include <array>
#include <map>
#include <memory>

#include "runtime/cuda/conv_engine.h"
#include "runtime/cuda/library_call.h"
#include "runtime/plan/roles.h"

namespace gpuc::cuda {

class Conv final : public LibraryCall {
 public:
  /// Chooses an engine within the command's workspace. f32 is computed in f32, or in TF32 where the command
  /// says so; f16 and bf16 are summed in f32. `alignment`: of every address that the command will see, in
  /// bytes. Error: nothing fits.
  static Result<std::unique_ptr<Conv>> create(const DnnHandle& handle, const fb::Conv& conv,
                                              uint32_t alignment);

  /// Makes cuDNN's pack of these addresses, so that a step makes none. Twice is once.
  bool mustBeBound() const override { return true; }
  Status bind(const CUdeviceptr* addresses) override;

  /// On the handle's stream. Error: the addresses were not bound.
  Status enqueue(const CUdeviceptr* addresses, CUstream stream) const override;

 private:
  using Addresses = std::array<CUdeviceptr, kConvOperands.size()>;
  static Addresses keyOf(const CUdeviceptr* addresses);

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
  std::map<Addresses, DnnDescriptor> packs_;
};

}  // namespace gpuc::cuda
