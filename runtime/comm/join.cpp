#include "runtime/comm/join.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/warn.h"
#include "runtime/comm/cores.h"
#include "runtime/comm/machines.h"
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

/// Memory that the ranks of a machine share. On one machine all goes by it but for their last words; on
/// several what machines send goes once.
class SharedMeans {
 public:
  SharedMeans(SharedRanks memory, MeshCommunicator& mesh, const Machines& machines,
              const LaunchOptions& options)
      : memory_(std::move(memory)),
        first_(machines.begin(machines.of(mesh.rank()))),
        rank_(mesh.rank() - first_),
        life_(mesh.lives().subspan(static_cast<size_t>(first_), static_cast<size_t>(memory_.size())), rank_,
              options.patience),
        // Who waits for another machine's rank knows better who is late than who waits for that one.
        inside_(memory_, rank_, options.limit + (machines.count() > 1 ? options.patience : kNone), &life_,
                machines.count() > 1
                    ? RanksElsewhere{.ranks_before = first_, .progress = [&] { mesh.progress(); }}
                    : RanksElsewhere{}) {
    if (machines.count() > 1) all_.emplace(mesh, memory_, inside_, machines);
  }

  Communicator& ranks() { return all_ ? static_cast<Communicator&>(*all_) : inside_; }

  void giveUp(const std::string& why) {
    memory_.lose(rank_, "failed: " + why,
                 inside_.hasFailed() ? SharedRanks::Loss::another : SharedRanks::Loss::itself);
  }

 private:
  static constexpr std::chrono::milliseconds kNone{0};

  SharedRanks memory_;
  const int64_t first_, rank_;
  LifeWatch life_;
  SharedCommunicator inside_;
  std::optional<MachinesCommunicator> all_;
};

/// None, if messages are all there is.
Result<std::unique_ptr<SharedMeans>> shareMemory(MeshCommunicator& ranks, const LaunchOptions& options) {
  const std::optional<Machines> machines = Machines::of(ranks.lives());
  if (!machines && ranks.rank() == 0)
    warn(
        "ranks of one machine do not follow one another, so that each sends other machines all by itself: "
        "start them machine by machine (mpirun --map-by slot, srun --distribution=block)");
  const bool is_of_use = machines && (machines->count() == 1 || machines->shareAny());
  if (!options.shares_memory || !is_of_use) return std::unique_ptr<SharedMeans>();
  const int64_t machine = machines->of(ranks.rank());
  GPUC_ASSIGN_OR_RETURN(std::optional<SharedRanks> memory,
                        SharedRanks::meet(ranks, machines->begin(machine), machines->size(machine)));
  if (!memory) return std::unique_ptr<SharedMeans>();
  return std::make_unique<SharedMeans>(*std::move(memory), ranks, *machines, options);
}

/// A collective of no use but that all have come to their end.
Status meetAtTheEnd(Communicator& ranks) {
  std::byte mine{1};
  std::vector<std::byte> all(static_cast<size_t>(ranks.size()));
  return ranks.gather({&mine, 1}, all);
}

/// Whether a rank has said no more than that it waits for one that has failed by itself, and says why.
bool isExplained(const std::string& words, const std::vector<std::string>& said) {
  for (size_t other = 0; other < said.size(); ++other)
    if (!said[other].empty() &&
        words.ends_with(", but rank " + std::to_string(other) + " failed: " + said[other]))
      return true;
  return false;
}

/// What a rank has to say when all have: once what several say, and nothing for who waited for another one;
/// that one says which it is.
std::string wordsOf(int64_t rank, const std::vector<std::string>& said) {
  const auto own = said.begin() + rank;
  if (isExplained(*own, said) || std::find(said.begin(), own, *own) != own) return "";
  const std::string name = "rank " + std::to_string(rank), waited = ", but " + name + " failed: " + *own;
  const bool is_alone = std::any_of(said.begin(), said.end(),
                                    [&](const std::string& words) { return words.ends_with(waited); });
  return rank > 0 && is_alone ? name + ": " + *own : *own;
}

Result<std::unique_ptr<Transport>> openTransport(const Launcher& launcher, const LaunchOptions& options) {
  if (launcher.meeting) return openTcp(*launcher.meeting, launcher.rank, launcher.ranks, options.limit);
  // MPI takes seconds to begin where a machine has much else to do, whatever the limit of an exchange is.
  constexpr std::chrono::milliseconds kLeast = std::chrono::minutes(1);
  return openMpi(launcher.mpi, launcher.rank, launcher.ranks, launcher.here, std::max(options.limit, kLeast));
}

/// Whether this rank says why ranks cannot meet. The machines may differ, but not what is on one of them. By
/// TCP the first rank looks for nobody: where the others do not find it, the second one says so.
bool isSpeaker(const Launcher& launcher, const std::string& why) {
  if (const std::optional<int64_t> ended = AbsentRanks::rankOf(why))
    return launcher.rank == (*ended == 0 ? 1 : 0);
  return launcher.local_rank == 0 || (launcher.meeting && launcher.rank == 1);
}

class Joined final : public JoinedRanks {
 public:
  Joined(std::unique_ptr<Transport> transport, const LaunchOptions& options)
      : transport_(std::move(transport)),
        messages_(*transport_, {.limit = options.limit, .patience = options.patience}) {}

  /// The first call.
  Status meet(const LaunchOptions& options) {
    GPUC_RETURN_IF_ERROR(messages_.meet());
    GPUC_ASSIGN_OR_RETURN(const CoreShare share, shareCores(messages_));
    transport_->setCrowded(share.isCrowded());
    GPUC_ASSIGN_OR_RETURN(means_, shareMemory(messages_, options));
    return okStatus();
  }

  Communicator& ranks() override { return means_ ? means_->ranks() : messages_; }

  Status end() override {
    GPUC_RETURN_IF_ERROR(meetAtTheEnd(ranks()));
    is_closed_ = true;
    return transport_->close();
  }

  std::vector<std::string> giveUp(const std::string& why) override {
    if (is_closed_) return std::vector<std::string>(static_cast<size_t>(ranks().size()));
    if (means_) means_->giveUp(why);
    return messages_.giveUp(why);
  }

  void leave() override {
    if (!is_closed_) messages_.leave();
  }

 private:
  std::unique_ptr<Transport> transport_;
  MeshCommunicator messages_;
  std::unique_ptr<SharedMeans> means_;
  bool is_closed_ = false;  // no message goes any more
};

}  // namespace

Result<std::unique_ptr<JoinedRanks>> JoinedRanks::join(const Launcher& launcher,
                                                       const LaunchOptions& options) {
  GPUC_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, openTransport(launcher, options));
  auto joined = std::make_unique<Joined>(std::move(transport), options);
  if (Status status = joined->meet(options); !status.ok()) {
    joined->giveUp(status.message());
    joined->leave();
    return status;
  }
  return std::unique_ptr<JoinedRanks>(std::move(joined));
}

int joinRanks(const Launcher& launcher, const LaunchOptions& options, const RankBody& body) {
  const LastWord last_word(launcher.rank == 0);
  Result<std::unique_ptr<Transport>> transport = openTransport(launcher, options);
  if (!transport.ok()) {
    if (isSpeaker(launcher, transport.message())) return last_word.error(transport.message());
    letAnotherSpeak();
    return AbsentRanks::rankOf(transport.message()) ? last_word.error(transport.message()) : 1;
  }

  Joined joined(*std::move(transport), options);
  const Status met = joined.meet(options);
  Result<int> outcome = met.ok() ? callBody(body, joined.ranks()) : met;
  if (outcome.ok()) {
    const Status ended = joined.end();
    if (ended.ok()) return *outcome;
    outcome = ended;
  }
  std::vector<std::string> said = joined.giveUp(outcome.message());
  said[static_cast<size_t>(launcher.rank)] = outcome.message();
  const std::string words = wordsOf(launcher.rank, said);
  if (!words.empty()) last_word.error(words);
  joined.leave();
  return 1;
}

}  // namespace gpuc
