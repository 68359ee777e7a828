//===- ConvShapes.h - Convolutions as the runtime describes them ------------===//
#pragma once

#include "dialects/plan/PlanOps.h"
#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// Of conv2d or one of its gradients, with static shapes.
ConvShape convShapeOf(mlir::Operation *op);

ConvShape convShapeOf(plan::ConvOp conv);

/// What the target's convolution may use beside its operands, in bytes.
int64_t convWorkspace(plan::TargetAttr target, const ConvShape &shape, bool tf32);

/// What a convolution writes to the plan beside its shape: buffers, null where there are none, and flags.
struct ConvBuffers {
  mlir::Value lhs, rhs, result, bias, mask, workspace;
  bool relu = false;
};

/// The command for `shape`, between these buffers; with `tf32`, f32 may be rounded to TF32.
plan::ConvOp createConv(mlir::OpBuilder &builder, mlir::Location location, const ConvShape &shape,
                        mlir::Type element, const ConvBuffers &buffers, bool tf32);

} // namespace gpuc
