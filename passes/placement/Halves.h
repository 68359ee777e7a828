// Where two threads share commands by halves: memory that changes hands from one buffer to the next.
#pragma once

#include "passes/placement/Problem.h"

namespace gpuc::placement {

/// Bytes that lie in the first half of a large buffer and in the second half of the one that had them before,
/// or the other way round, all buffers of a step that repeats together. One core writes there what the other
/// one has had: between cores without a cache in common that takes 10 times as long where it was read since.
int64_t bytesOfOtherHalf(const Problem& problem, const Solution& solution);

/// Moves large buffers so that those bytes are fewer, as their middles come to lie where those of buffers
/// before or behind them lie. The solution must be valid and is so afterwards; it is no higher than before.
void matchHalves(const Problem& problem, Solution& solution);

}  // namespace gpuc::placement
