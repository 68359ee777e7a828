//===- ConvShapes.h - Convolutions as the runtime describes them -------------===//
#pragma once

#include "dialects/plan/PlanOps.h"
#include "runtime/workspace/conv_shape.h"
#include "runtime/workspace/matmul_workspace.h"

#include <optional>

namespace gpuc {

/// Of conv2d or one of its gradients, with static shapes. What follows it is left out.
ConvShape convShapeOf(mlir::Operation *op);
ConvShape convShapeOf(plan::ConvOp conv);

/// The product of the same operands as they lie that the host computes instead, where each picture is one
/// window (a channel's attention, a discriminator's last layer): images by filters for each of the three
/// convolutions, with a picture's elements as the columns of x. Else none.
std::optional<MatmulShape> productOf(const ConvShape &shape);

} // namespace gpuc
