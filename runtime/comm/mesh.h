// Collectives made of messages: each rank has a line to every other one.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/collective.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/life_watch.h"
#include "runtime/comm/transport/transport.h"

namespace gpuc {

/// One rank's end. A sum goes by chunks: each rank sends every other one its part of that one's share of the
/// chunk, adds up its own share over all parts in the order of ranks, and sends the sum to all: as many bytes
/// as a ring moves, in two messages. Where messages are short all send all, and each adds up the whole.
class MeshCommunicator final : public Communicator {
 public:
  struct Options {
    /// How long a rank waits for another one that is alive.
    std::chrono::milliseconds limit = std::chrono::minutes(10);
    /// How long a rank may be stopped before it counts as lost, and how long one that gives up listens to
    /// what others have to say.
    std::chrono::milliseconds patience = std::chrono::seconds(5);
  };

  /// `transport` must outlive it.
  MeshCommunicator(Transport& transport, const Options& options);

  /// The first call, by all ranks: from then on each watches whether the others of its machine live.
  Status meet();

  /// Of each rank; empty before meet().
  std::span<const Life> lives() const { return lives_; }

  int64_t rank() const override { return transport_.rank(); }
  int64_t size() const override { return transport_.size(); }
  std::chrono::milliseconds limit() const override { return options_.limit; }
  Status look() override;
  Status allReduce(DataType type, size_t elements, const std::byte* part, std::byte* result) override;
  Status reduceScatter(DataType type, const Shares& shares, std::span<const void* const> wholes,
                       std::span<void* const> own) override;
  Status allGather(DataType type, const Shares& shares, std::span<const void* const> own,
                   std::span<void* const> wholes) override;
  Status broadcast(std::span<std::byte> bytes, int64_t root) override;
  Status gather(std::span<const std::byte> mine, std::span<std::byte> all) override;

  /// For a rank that fails: tells the others why, so that they need not wait for it, and hears whether they
  /// fail too. What each said, empty of those that said nothing. No collective succeeds afterwards.
  std::vector<std::string> giveUp(const std::string& why);

  /// Behind giveUp(): waits until those that fail, too, have come as far.
  void leave();

  // For a collective that is made elsewhere, of the same messages. All ranks begin() it, each with an end of
  // every message; to and from a rank itself, and of no bytes, there is none.

  Status begin(CollectiveKind kind, DataType type, size_t count);
  void send(int64_t to, const std::byte* bytes, size_t count);
  void receive(int64_t from, std::byte* bytes, size_t count);
  /// Returns when all that was begun is done.
  Status wait();
  /// For who waits for something else: messages that are under way go on.
  void progress() { transport_.progress(); }
  /// Whom to tell why a collective failed, before the others are heard.
  void tellFailureTo(std::function<void(const std::string& why)> whom) { tell_failure_ = std::move(whom); }

 private:
  using Clock = std::chrono::steady_clock;

  Status sumShort(DataType type, size_t elements, const std::byte* part, std::byte* result);
  Status sumChunk(DataType type, size_t elements, const std::byte* part, std::byte* result);
  std::byte* slot(int64_t rank) { return slots_.data() + static_cast<size_t>(rank) * slot_bytes_; }
  std::byte* packed(int64_t rank) { return packed_.data() + static_cast<size_t>(rank) * slot_bytes_; }

  bool isAllDone() const;
  Status checkLines();
  Status checkAlive();
  void lookForLoss();
  Status findLost(bool time_is_up);
  Status lost(int64_t rank, const std::string& why);

  void exchangeGoodbyes(const std::string& why);
  bool hasSaidGoodbye(int64_t other);
  std::string hearWhy(int64_t other);
  void progressUntil(std::chrono::milliseconds most, const std::function<bool()>& is_done);
  void lookForGone();
  bool isListening(int64_t other) const;

  Transport& transport_;
  const Options options_;
  std::vector<Life> lives_;
  std::optional<LifeWatch> life_;
  std::optional<LifeWatch::Loss> loss_;  // that was seen
  Clock::time_point loss_at_;
  uint64_t collectives_ = 0;
  Transport::Label label_ = 0;   // of the messages of the collective under way
  std::vector<size_t> awaited_;  // from each rank: bytes that were asked for and not looked at, or 0
  Status failure_ = okStatus();
  std::function<void(const std::string&)> tell_failure_;

  size_t slot_bytes_;
  std::vector<std::byte> slots_;         // for a part of each rank
  std::vector<std::byte> packed_;        // for each rank, what goes to it from several places
  std::vector<const std::byte*> parts_;  // that are added up

  // Of each other rank, when one fails.
  enum class Heard : uint8_t { nothing, words, all };  // words: that it failed, and why is expected
  std::vector<bool> is_gone_;
  std::vector<Heard> heard_;
  std::vector<std::byte> goodbye_;   // what this rank says
  std::vector<std::byte> goodbyes_;  // what the others do
  std::vector<std::string> said_;
};

}  // namespace gpuc
