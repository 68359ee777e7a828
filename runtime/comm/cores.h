// How ranks of one machine share its cores.
#pragma once

#include "runtime/comm/communicator.h"

namespace gpuc {

/// How many ranks, this one among them, may run on a core that this one may run on: a collective, which all
/// call. A launcher may have given each rank cores of its own.
Result<int64_t> ranksOnMyCores(Communicator& ranks);

}  // namespace gpuc
