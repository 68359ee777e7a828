// Ranks that are processes of one machine, and share memory.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/comm/collective.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/life_watch.h"
#include "runtime/comm/transport/yields.h"

namespace gpuc {

/// What all know of one rank.
struct RankState {
  static constexpr size_t kMostText = 512;
  std::atomic<uint64_t> arrived = 0;  // at how many meetings
  std::atomic<uint64_t> asks = 0;     // for what, in the collective under way: see SharedCommunicator
  std::atomic<uint32_t> loss = 0;     // a SharedRanks::Loss; from `itself` on `lost` holds why
  char lost[kMostText] = {};
};

/// The memory that ranks share: mapped before they are forked, by who forks them, or by each of them.
class SharedRanks {
 public:
  /// `another`: it has given up because another rank is lost. `in_order`: it has ended, and had its part in
  /// all that others may wait for by other means than these.
  enum class Loss : uint32_t { none, being_written, itself, another, in_order };

  /// Errors: fewer ranks than 1, more than 1,024; no memory.
  static Result<SharedRanks> create(int64_t ranks);

  /// The same for ranks that somebody else has started, of which `count` from `first` on are on this machine:
  /// a collective of those of all machines. None, on all, if one of them cannot open what the first of its
  /// machine has made. The memory has no name, and ends with them.
  static Result<std::optional<SharedRanks>> meet(Communicator& ranks, int64_t first, int64_t count);
  SharedRanks(SharedRanks&&) noexcept;
  SharedRanks& operator=(SharedRanks&&) = delete;
  ~SharedRanks();

  int64_t size() const { return ranks_; }

  /// What they exchange by: a slot of each rank, and behind them one more.
  size_t slotBytes() const { return slot_bytes_; }
  static size_t slotBytes(int64_t ranks);
  std::byte* slot(int64_t rank) const;
  std::byte* sums() const { return slot(ranks_); }

  /// No rank waits for this one any more: they fail, and say why. For who watches the ranks; the first to say
  /// it is heard.
  void lose(int64_t rank, const std::string& why, Loss loss = Loss::itself);

 private:
  friend class SharedCommunicator;
  struct Header;
  explicit SharedRanks(int64_t ranks);
  Status map(int file, int flags);
  void begin();

  RankState& state(int64_t rank) const;
  void wakeAll() const;

  int64_t ranks_ = 0;
  size_t slot_bytes_ = 0;
  Header* header_ = nullptr;
  size_t bytes_ = 0;
};

/// For ranks of one machine, where there are others on other machines.
struct RanksElsewhere {
  int64_t ranks_before = 0;        // this machine's first: errors name the ranks of all
  std::function<void()> progress;  // called again and again by who waits
};

/// One rank's end. An exchange goes by chunks: each rank puts its part of a chunk into its slot, and adds up,
/// over all slots in the order of ranks, its share of the chunk; then all take the whole sum. Who waits
/// yields for a little while and then sleeps, so that there may be more ranks than cores.
class SharedCommunicator final : public Communicator {
 public:
  /// `limit`: how long a rank waits for another one that is alive. `life`: how those of the others are
  /// watched where nobody else calls lose(). `ranks` must outlive it, and so must `life`.
  SharedCommunicator(SharedRanks& ranks, int64_t rank, std::chrono::milliseconds limit,
                     LifeWatch* life = nullptr, RanksElsewhere elsewhere = {});

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return ranks_.size(); }
  std::chrono::milliseconds limit() const override { return limit_; }
  Status look() override;
  /// Whether another rank was lost.
  bool hasFailed() const { return !failure_.ok(); }
  Status allReduce(DataType type, size_t elements, const std::byte* part, std::byte* result) override;
  Status reduceScatter(DataType type, const Shares& shares, std::span<const void* const> wholes,
                       std::span<void* const> own) override;
  Status allGather(DataType type, const Shares& shares, std::span<const void* const> own,
                   std::span<void* const> wholes) override;
  Status broadcast(std::span<std::byte> bytes, int64_t root) override;
  Status gather(std::span<const std::byte> mine, std::span<std::byte> all) override;

  // For a collective that is made elsewhere, of the same meetings.

  /// All must ask for the same, which meetAlike() checks.
  Status begin(CollectiveKind kind, DataType type, size_t count);
  /// Returns when all ranks have come to it.
  Status meet();
  Status meetAlike();

 private:
  bool haveAllArrived() const;
  void lookForLost();
  Status findMissing(bool time_is_up);
  Status lost(int64_t rank, const std::string& why);

  SharedRanks& ranks_;
  const int64_t rank_;
  const std::chrono::milliseconds limit_;
  LifeWatch* const life_;
  const RanksElsewhere elsewhere_;
  const bool is_crowded_;  // there are more ranks than cores
  Yields yields_;
  std::chrono::steady_clock::time_point next_look_;
  uint64_t meetings_ = 0, collectives_ = 0;
  Status failure_ = okStatus();
  std::vector<const std::byte*> parts_;  // of the share that this rank adds up
};

}  // namespace gpuc
