#pragma once

#include "runtime/plan/verify.h"

namespace gpuc {

/// A convolution whose operands lie within their buffers: its numbers, that the operands have just the bytes
/// that they say, and that the target computes it.
Status verifyConv(const fb::Conv& conv, fb::TargetKind target);

}  // namespace gpuc
