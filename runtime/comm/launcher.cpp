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
  const char* local_ranks;
  MpiFlavour mpi = MpiFlavour::any;
};

constexpr const char* kOfElastic = "TORCHELASTIC_RUN_ID";

// The first that is there counts: mpirun in a job of Slurm is mpirun. SLURM_STEP_NUM_TASKS and not
// SLURM_NTASKS, which a batch script has in its environment, too.
constexpr Variables kWithMpi[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", MpiFlavour::open_mpi},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", MpiFlavour::mpich},
    {"srun", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr},
};
constexpr Variables kTorchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Variables kSrun{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr};

std::string textOf(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? text : "";
}

bool isSet(const char* variable) { return std::getenv(variable) != nullptr; }

Result<int64_t> numberOf(const char* variable) {
  const Result<int64_t> number = parseInt64(textOf(variable));
  if (!number.ok()) return Status::error(std::string(variable) + "=" + textOf(variable) + " is no number");
  return number;
}

bool isMeetingSet() { return isSet("MASTER_ADDR") && isSet("MASTER_PORT"); }

/// torchrun itself may listen at the port that it names.
Result<MeetingPlace> findMeeting(const std::string& job) {
  if (textOf("MASTER_ADDR").empty())
    return Status::error("MASTER_ADDR is empty: the machine of the first rank");
  GPUC_ASSIGN_OR_RETURN(const int64_t port, numberOf("MASTER_PORT"));
  if (port < 1 || port > 65535 - MeetingPlace::kPorts)
    return errorf("MASTER_PORT=%lld: a port below 65,528", static_cast<long long>(port));
  const bool is_taken = textOf("TORCHELASTIC_USE_AGENT_STORE") == "True";
  return MeetingPlace{textOf("MASTER_ADDR"), port + (is_taken ? 1 : 0), job};
}

/// Of torchrun's variables. Who sets RANK and WORLD_SIZE, or all but one, means ranks, of which each would
/// train alone. A batch script may well set the others alone.
Status checkNothingIsMissing() {
  std::string set, missing;
  int count = 0;
  for (const char* name : {kTorchrun.rank, kTorchrun.ranks, "MASTER_ADDR", "MASTER_PORT"}) {
    std::string& names = isSet(name) ? set : missing;
    names += (names.empty() ? "" : ", ") + std::string(name);
    count += isSet(name) ? 1 : 0;
  }
  const bool means_ranks = count == 3 || (isSet(kTorchrun.rank) && isSet(kTorchrun.ranks));
  if (!means_ranks || count == 4 || textOf(kTorchrun.ranks) == "1") return okStatus();
  return Status::error(set + " are set, as by torchrun, but not " + missing +
                       ": set that too, or unset them");
}

Result<std::optional<Launcher>> read(const Variables& variables) {
  Launcher launcher{.name = variables.launcher, .mpi = variables.mpi};
  GPUC_ASSIGN_OR_RETURN(launcher.rank, numberOf(variables.rank));
  GPUC_ASSIGN_OR_RETURN(launcher.ranks, numberOf(variables.ranks));
  if (launcher.rank < 0 || launcher.rank >= launcher.ranks || launcher.ranks > kMostRanks)
    return errorf("%s=%lld, %s=%lld: there are from 1 to %lld ranks, the first is 0", variables.rank,
                  static_cast<long long>(launcher.rank), variables.ranks,
                  static_cast<long long>(launcher.ranks), static_cast<long long>(kMostRanks));
  if (launcher.ranks == 1) return std::optional<Launcher>();
  if (variables.local_ranks && textOf(variables.local_ranks) == textOf(variables.ranks))
    launcher.here = {.variable = variables.rank, .rank = launcher.rank, .ranks = launcher.ranks};
  if (!isSet(variables.local_rank)) return std::optional(launcher);  // MPICH's mpirun does not say it
  GPUC_ASSIGN_OR_RETURN(launcher.local_rank, numberOf(variables.local_rank));
  if (launcher.local_rank < 0)
    return errorf("%s=%lld: of the ranks of a machine the first is 0", variables.local_rank,
                  static_cast<long long>(launcher.local_rank));
  return std::optional(launcher);
}

Result<std::optional<Launcher>> readWithMeeting(const Variables& variables, const std::string& job) {
  GPUC_ASSIGN_OR_RETURN(std::optional<Launcher> launcher, read(variables));
  if (!launcher) return launcher;
  GPUC_ASSIGN_OR_RETURN(launcher->meeting, findMeeting(job));
  launcher->meeting->here = launcher->here;
  return launcher;
}

}  // namespace

Result<std::optional<Launcher>> findLauncher() {
  const bool is_torchrun = isSet(kTorchrun.rank) && isSet(kTorchrun.ranks) && isMeetingSet();
  if (isSet(kOfElastic) && !is_torchrun)
    return Status::error(
        "TORCHELASTIC_RUN_ID is set, as by torchrun, but not all of RANK, WORLD_SIZE, MASTER_ADDR and "
        "MASTER_PORT: set them, or unset it");
  if (isSet(kOfElastic))
    return readWithMeeting(kTorchrun, textOf(kOfElastic) + "." + textOf("TORCHELASTIC_RESTART_COUNT"));
  for (const Variables& variables : kWithMpi)
    if (isSet(variables.rank) && isSet(variables.ranks)) return read(variables);
  if (is_torchrun) return readWithMeeting(kTorchrun, "");
  if (!isSet(kSrun.rank) || !isSet(kSrun.ranks)) {
    GPUC_RETURN_IF_ERROR(checkNothingIsMissing());
    return std::optional<Launcher>();
  }
  if (isMeetingSet()) return readWithMeeting(kSrun, textOf("SLURM_JOB_ID") + "." + textOf("SLURM_STEP_ID"));
  GPUC_ASSIGN_OR_RETURN(const std::optional<Launcher> launcher, read(kSrun));
  if (!launcher) return std::optional<Launcher>();
  return Status::error(
      "srun has started " + std::to_string(launcher->ranks) +
      " ranks that cannot find one another: use srun --mpi=pmix or --mpi=pmi2, or set MASTER_ADDR and "
      "MASTER_PORT");
}

}  // namespace gpuc
