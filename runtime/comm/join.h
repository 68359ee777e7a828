// One rank among those that a launcher has started.
#pragma once

#include "runtime/comm/launch.h"
#include "runtime/comm/launcher.h"

namespace gpuc {

/// Finds the other ranks, runs `body` and ends; `options.ranks` is not read. The exit status: that of `body`,
/// or 1 after an error of it, or if a rank was lost. An error is on stderr by then, once if several ranks
/// have the same. Ranks but the first write nothing else to stdout and stderr.
int joinRanks(const Launcher& launcher, const LaunchOptions& options, const RankBody& body);

}  // namespace gpuc
