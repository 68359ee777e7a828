// How ranks of one machine share its cores.
#pragma once

#include "runtime/comm/communicator.h"

namespace gpuc {

struct CoreShare {
  int64_t cores = 1;  // that this rank may run on
  int64_t ranks = 1;  // that may run on one of these, this one among them

  bool isCrowded() const { return ranks > cores; }
};

/// That this process may run on.
int64_t coresOfThisProcess();

/// A collective, which all call. A launcher may have given each rank cores of its own.
Result<CoreShare> shareCores(Communicator& ranks);

}  // namespace gpuc
