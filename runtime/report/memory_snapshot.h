// A plan's memory in the form that PyTorch's memory visualiser reads.
#pragma once

#include <string>

#include "runtime/plan/plan.h"

namespace gpuc {

/// The training step, or else the first program, as a snapshot of a caching allocator that has recorded its
/// history: one segment, which is the arena, and an allocation and a release for each buffer, in the order of
/// the commands. What is written over another buffer is allocated once that is released: such a format has no
/// place for both.
std::string memorySnapshot(const Plan& plan);

}  // namespace gpuc
