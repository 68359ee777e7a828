//===- RandomGraph.h - Valid small graphs from a seed -------------------------===//
#pragma once

#include "test/gradients/Registry.h"

#include <cstdint>

namespace gpuc::gradients {

/// A function of a few small tensors and 5 to 20 ops of every group, as a case: its first output is a scalar
/// that depends on the last values, its second one of them. Values stay of moderate size, and nothing is
/// divided by what comes near zero, so that rounding errors stay small. The same seed gives the same text
/// everywhere.
Case randomGraph(uint64_t seed);

} // namespace gpuc::gradients
