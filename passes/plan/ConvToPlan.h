//===- ConvToPlan.h - Convolutions as a library's command ---------------------===//
#pragma once

#include "passes/plan/ProgramWriter.h"

namespace gpuc {

/// Writes conv2d or one of its gradients as a plan.conv. An error for a layout that the target has not.
mlir::LogicalResult convertConvolution(ProgramWriter &writer, const Product &product);

} // namespace gpuc
