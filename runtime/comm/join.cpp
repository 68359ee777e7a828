#include "runtime/comm/join.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/cores.h"
#include "runtime/comm/mesh.h"
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
  Result<int> outcome = status.ok() ? callBody(body, ranks) : Result<int>(status);
  if (outcome.ok()) {
    status = meetAtTheEnd(ranks);
    if (status.ok()) {
      status = (*transport)->close();
      return status.ok() ? *outcome : last_word.error(status.message());
    }
    outcome = status;
  }
  const std::vector<std::string> said = ranks.giveUp(outcome.message());
  const auto own = said.begin() + launcher.rank;
  if (std::find(said.begin(), own, outcome.message()) == own) last_word.error(outcome.message());
  ranks.leave();
  return 1;
}

}  // namespace gpuc
