//===- Upgrade.h - Nodes of old opsets as those of opset 13 -----------------===//
#pragma once

#include "frontend/onnx/Model.h"

namespace gpuc::onnx {

/// Opsets from this one to 12 are read by way of Upgrade.
inline constexpr int64_t kLeastOpset = 7;

/// Rewrites nodes of an opset below 13 as opset 13 has them: what was an attribute and is an input now
/// becomes a Constant, ops that have gone become those that replaced them. What means something else by the
/// opset's number (Softmax's axis) is left to the lowering.
void upgrade(Model &model);

} // namespace gpuc::onnx
