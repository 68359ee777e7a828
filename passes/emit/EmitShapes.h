//===- EmitShapes.h - Shapes of library calls in the plan file -------------===//
#pragma once

#include "runtime/plan/plan_generated.h"
#include "runtime/workspace/attention_shape.h"
#include "runtime/workspace/conv_shape.h"

namespace gpuc {

/// Writes all that is no operand into the command's entry.
void emitShape(const ConvShape &shape, fb::ConvT &entry);
void emitShape(const AttentionShape &shape, fb::AttentionT &entry);

} // namespace gpuc
