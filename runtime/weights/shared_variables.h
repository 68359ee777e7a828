// Ranks begin with the same variables.
#pragma once

#include "runtime/gpuc.h"

namespace gpuc {

/// The first rank's variables are those of all, but for what tells ranks apart. A collective.
Status shareVariables(Session& session, Communicator& ranks);

}  // namespace gpuc
