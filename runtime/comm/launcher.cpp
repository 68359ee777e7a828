#include "runtime/comm/launcher.h"

#include <cstdlib>

#include "runtime/base/parse.h"
#include "runtime/comm/launch.h"

namespace gpuc {
namespace {

/// Where a kind of launcher says which rank this is, and how many there are.
struct Variables {
  const char* launcher;
  const char* rank;
  const char* ranks;
  const char* local_rank;
  MpiFlavour mpi;
};

// The first that is there counts: mpirun in a job of Slurm is mpirun. SLURM_STEP_NUM_TASKS and not
// SLURM_NTASKS, which a batch script has in its environment, too.
constexpr Variables kLaunchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     MpiFlavour::open_mpi},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", MpiFlavour::mpich},
    {"srun", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", MpiFlavour::any},
};

Result<int64_t> readNumber(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text) return Status::error(std::string(variable) + " is not set");
  const Result<int64_t> number = parseInt64(text);
  if (!number.ok()) return Status::error(std::string(variable) + "=" + text + " is no number");
  return number;
}

}  // namespace

Result<std::optional<Launcher>> findLauncher() {
  for (const Variables& variables : kLaunchers) {
    if (!std::getenv(variables.rank) || !std::getenv(variables.ranks)) continue;
    GPUC_ASSIGN_OR_RETURN(const int64_t rank, readNumber(variables.rank));
    GPUC_ASSIGN_OR_RETURN(const int64_t ranks, readNumber(variables.ranks));
    if (ranks == 1) return std::optional<Launcher>();
    if (rank < 0 || rank >= ranks || ranks > kMostRanks)
      return errorf("%s=%lld, %s=%lld: there are from 2 to %lld ranks, the first is 0", variables.rank,
                    static_cast<long long>(rank), variables.ranks, static_cast<long long>(ranks),
                    static_cast<long long>(kMostRanks));
    const int64_t local_rank = readNumber(variables.local_rank).ok() ? *readNumber(variables.local_rank) : 0;
    return std::optional(Launcher{variables.launcher, rank, ranks, local_rank, variables.mpi});
  }
  return std::optional<Launcher>();
}

}  // namespace gpuc
