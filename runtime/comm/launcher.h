// Whether somebody else has started this process as one of several ranks: mpirun, srun, torchrun.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/comm/transport/mpi.h"
#include "runtime/comm/transport/tcp_meeting.h"

namespace gpuc {

/// What a launcher says in the environment.
struct Launcher {
  std::string name;  // "mpirun", "srun", "torchrun"
  int64_t rank = 0;
  int64_t ranks = 1;
  int64_t local_rank = 0;  // among those of this machine; 0 if that is not known
  RanksHere here = {};
  MpiFlavour mpi = MpiFlavour::any;
  std::optional<MeetingPlace> meeting = {};  // without MPI
};

/// None, if there is no launcher, or if it has started one process alone. Errors: variables that contradict
/// one another.
Result<std::optional<Launcher>> findLauncher();

}  // namespace gpuc
