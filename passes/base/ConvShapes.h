//===- ConvShapes.h - Convolutions as the runtime describes them -------------===//
#pragma once

#include "dialects/plan/PlanOps.h"
#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// Of conv2d or one of its gradients, with static shapes. What follows it is left out.
ConvShape convShapeOf(mlir::Operation *op);
ConvShape convShapeOf(plan::ConvOp conv);

} // namespace gpuc
