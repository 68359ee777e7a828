// When each command ends, asked of the definition: what a command waits for, and nothing kept that could be
// wrong.
#pragma once

#include "passes/simulate/Simulator.h"

namespace gpuc {

/// When the last rank has ended so many steps. Work is not stretched but for stragglers.
double naiveEnd(const Schedule &schedule, const World &world, int64_t steps);

} // namespace gpuc
