#include "runtime/comm/join.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/cores.h"
#include "runtime/comm/mesh.h"
#include "runtime/comm/shared_memory.h"
#include "runtime/comm/transport/mpi.h"
#include "runtime/comm/transport/tcp.h"

namespace gpuc {
namespace {

/// Where the error of a rank goes that says nothing else.
class LastWord {
 public:
  explicit LastWord(bool is_first) {
    if (!is_first) errors_ = beQuiet();
  }

  /// 1.
  int error(const std::string& text) const {
    ::dprintf(errors_, "error: %s\n", text.c_str());
    return 1;
  }

 private:
  int errors_ = STDERR_FILENO;
};

/// Where all ranks are on one machine: memory that they share, by which all goes but for their last words.
struct SharedMeans {
  SharedMeans(SharedRanks memory, const MeshCommunicator& ranks, const LaunchOptions& options)
      : memory(std::move(memory)),
        life(ranks.lives(), ranks.rank(), options.patience),
        ranks(this->memory, ranks.rank(), options.limit, &life) {}

  SharedRanks memory;
  LifeWatch life;
  SharedCommunicator ranks;
};

/// None, if messages are all there is.
Result<std::unique_ptr<SharedMeans>> shareMemory(MeshCommunicator& ranks, const LaunchOptions& options) {
  const std::span<const Life> lives = ranks.lives();
  const bool is_one_machine = std::all_of(lives.begin(), lives.end(),
                                          [&](const Life& life) { return life.machine == lives[0].machine; });
  if (!options.shares_memory || !is_one_machine) return std::unique_ptr<SharedMeans>();
  GPUC_ASSIGN_OR_RETURN(std::optional<SharedRanks> memory, SharedRanks::meet(ranks));
  if (!memory) return std::unique_ptr<SharedMeans>();
  return std::make_unique<SharedMeans>(*std::move(memory), ranks, options);
}

Status meet(MeshCommunicator& ranks, Transport& transport) {
  GPUC_RETURN_IF_ERROR(ranks.meet());
  GPUC_ASSIGN_OR_RETURN(const CoreShare share, shareCores(ranks));
  transport.setCrowded(share.isCrowded());
  return okStatus();
}

/// A collective of no use but that all have come to their end.
Status meetAtTheEnd(Communicator& ranks) {
  std::byte mine{1};
  std::vector<std::byte> all(static_cast<size_t>(ranks.size()));
  return ranks.gather({&mine, 1}, all);
}

}  // namespace

int joinRanks(const Launcher& launcher, const LaunchOptions& options, const RankBody& body) {
  const LastWord last_word(launcher.rank == 0);
  Result<std::unique_ptr<Transport>> transport =
      launcher.meeting ? openTcp(*launcher.meeting, launcher.rank, launcher.ranks, options.limit)
                       : openMpi(launcher.mpi, launcher.rank, launcher.ranks);
  // The machines may differ, but not what is on one of them.
  if (!transport.ok()) {
    if (launcher.local_rank == 0) return last_word.error(transport.message());
    letAnotherSpeak();
    return 1;
  }

  MeshCommunicator ranks(**transport, {.limit = options.limit, .patience = options.patience});
  Status status = meet(ranks, **transport);
  Result<std::unique_ptr<SharedMeans>> shared = status.ok() ? shareMemory(ranks, options) : status;
  SharedMeans* const means = shared.ok() ? shared->get() : nullptr;
  Communicator& used = means ? static_cast<Communicator&>(means->ranks) : ranks;
  Result<int> outcome = shared.ok() ? callBody(body, used) : shared.status();
  if (outcome.ok()) {
    status = meetAtTheEnd(used);
    if (status.ok()) {
      status = (*transport)->close();
      return status.ok() ? *outcome : last_word.error(status.message());
    }
    outcome = status;
  }
  if (means)
    means->memory.lose(launcher.rank, "failed: " + outcome.message(),
                       means->ranks.hasFailed() ? SharedRanks::Loss::another : SharedRanks::Loss::itself);
  const std::vector<std::string> said = ranks.giveUp(outcome.message());
  const auto own = said.begin() + launcher.rank;
  if (std::find(said.begin(), own, outcome.message()) == own) last_word.error(outcome.message());
  ranks.leave();
  return 1;
}

}  // namespace gpuc
