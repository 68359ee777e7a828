//===- Loop.h - gpuc.scan for ONNX's loops over time ------------------------===//
#pragma once

#include "frontend/onnx/Tensor.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace gpuc::onnx {

/// What one step hands to the next, and its slice of each output; of the whole loop: what the last step
/// carries out, and the outputs with all steps.
struct LoopValues {
  std::vector<Tensor> carried;
  std::vector<Tensor> outputs;
};

} // namespace gpuc::onnx

template <> inline constexpr bool gpuc::kEmptyIsFailure<gpuc::onnx::LoopValues> = true;

namespace gpuc::onnx {

struct LoopOptions {
  bool batchFirst = false; ///< Inputs and outputs are [batch, time, …], else [time, …].
  bool reverse = false;    ///< From the last step to the first; slices stay where they are.
};

/// One step: slices of the inputs, what is carried, the captures. It must use no other value.
using LoopBody =
    llvm::function_ref<LoopValues(const std::vector<Tensor> &slices, const std::vector<Tensor> &carried,
                                  const std::vector<Tensor> &captures)>;

/// Executes `body` for each step of the inputs, of which there is at least one. Empty after an error, which
/// may be one of the body.
LoopValues loop(Emitter &emitter, const std::vector<Tensor> &inputs, const std::vector<Tensor> &inits,
                const std::vector<Tensor> &captures, LoopOptions options, LoopBody body);

} // namespace gpuc::onnx
