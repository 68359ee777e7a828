//===- Upgrade.h - Nodes of old opsets as those of opset 13 -----------------===//
#pragma once

#include "frontend/onnx/reader/Model.h"

namespace gpuc::onnx {

/// Opsets from this one to 12 are read by way of Upgrade.
inline constexpr int64_t kLeastOpset = 7;

/// Rewrites nodes of an opset below 13 as opset 13 has them: what was an attribute and is an input now
/// becomes a Constant, ops that have gone become those that replaced them. What means something else by the
/// opset's number (Softmax's axis) is left to the lowering.
void upgrade(Model &model);

/// Resize of opset 10 has no nearest_mode: where pixels become fewer its example takes the next one, {1, 3}
/// of {1, 2, 3, 4} by 0.6, and the one before where they become more, as ONNX Runtime does.
inline constexpr const char *kNearestOfOpset10 = "that of opset 10";

} // namespace gpuc::onnx
