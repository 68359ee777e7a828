// What the cache that cores share holds for this process: of a virtual machine the system names that of the
// whole socket, of which others have their part.
#pragma once

#include "passes/cost/Rates.h"

namespace gpuc {

/// What the system says, with the shared cache's size no larger than what is found to be read as fast as from
/// it. Takes a few tenths of a second, and twice the memory of that cache for so long; where there is none,
/// the size is the system's.
CacheSizes probeCaches(CacheSizes said);

}  // namespace gpuc
