#include "runtime/comm/mesh.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/comm/rank_sum.h"
#include "runtime/comm/share_runs.h"

namespace gpuc {
namespace {

/// What is under way at once: of a chunk of this length each rank has a share.
constexpr size_t kChunkBytes = size_t{4} << 20;
/// Up to here a second message costs more than the bytes that it saves.
constexpr size_t kShortBytes = 4096;
constexpr size_t kCacheLine = 64;
constexpr size_t kWordsBytes = 1024;

constexpr Transport::Label kFailed = Transport::kMostLabel, kWords = kFailed - 1, kLeaving = kFailed - 2;

constexpr std::chrono::milliseconds kLook{20};
/// What a rank sent before it died, or why it failed, may be on its way.
constexpr std::chrono::milliseconds kLastMessages{100}, kLastWords{1000};

}  // namespace

MeshCommunicator::MeshCommunicator(Transport& transport, const Options& options)
    : transport_(transport),
      options_(options),
      awaited_(static_cast<size_t>(transport.size())),
      slot_bytes_((kChunkBytes / static_cast<size_t>(transport.size()) + kCacheLine - 1) / kCacheLine *
                  kCacheLine),
      slots_(slot_bytes_ * static_cast<size_t>(transport.size())),
      packed_(slots_.size()),
      parts_(static_cast<size_t>(transport.size())),
      is_gone_(static_cast<size_t>(transport.size())),
      heard_(static_cast<size_t>(transport.size())),
      goodbye_(kWordsBytes),
      goodbyes_(kWordsBytes * static_cast<size_t>(transport.size())),
      said_(static_cast<size_t>(transport.size())) {}

Status MeshCommunicator::meet() {
  const Life own = Life::ofThisProcess();
  std::vector<Life> lives(static_cast<size_t>(size()));
  GPUC_RETURN_IF_ERROR(gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(lives))));
  lives_ = std::move(lives);
  life_.emplace(lives_, rank(), options_.patience);
  return okStatus();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// Messages of two collectives that differ in their place, kind, type or length have different labels, but
/// for one pair in 16,000: who does something else than the others is found out.
Status MeshCommunicator::begin(CollectiveKind kind, DataType type, size_t count) {
  if (!failure_.ok()) return failure_;
  ++collectives_;
  const uint64_t asks = uint64_t{count} << 16 | uint64_t(type) << 8 | uint64_t(kind);
  const uint64_t mixed = (asks + collectives_ * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd;
  label_ = static_cast<Transport::Label>(mixed >> 50);
  static_assert(kLeaving > (1 << 14) - 1, "labels of collectives have 14 bits");
  return okStatus();
}

Status MeshCommunicator::allReduce(DataType type, size_t elements, const std::byte* part, std::byte* result) {
  if (elements == 0) return failure_;
  GPUC_RETURN_IF_ERROR(begin(CollectiveKind::sum, type, elements));
  const auto size = static_cast<size_t>(sizeOf(type));
  if (elements * size <= std::min(kShortBytes, slot_bytes_)) return sumShort(type, elements, part, result);
  const size_t most = slot_bytes_ / size * parts_.size();
  for (size_t first = 0; first < elements; first += most)
    GPUC_RETURN_IF_ERROR(
        sumChunk(type, std::min(most, elements - first), part + first * size, result + first * size));
  return okStatus();
}

Status MeshCommunicator::sumShort(DataType type, size_t elements, const std::byte* part, std::byte* result) {
  const size_t bytes = elements * static_cast<size_t>(sizeOf(type));
  for (int64_t other = 0; other < size(); ++other) {
    receive(other, slot(other), bytes);
    send(other, part, bytes);
    parts_[static_cast<size_t>(other)] = other == rank() ? part : slot(other);
  }
  GPUC_RETURN_IF_ERROR(wait());
  sumParts(type, elements, parts_, result);
  return okStatus();
}

Status MeshCommunicator::sumChunk(DataType type, size_t elements, const std::byte* part, std::byte* result) {
  const auto bytes = static_cast<size_t>(sizeOf(type));
  auto begin = [&](int64_t rank) { return elements * static_cast<size_t>(rank) / parts_.size() * bytes; };
  auto length = [&](int64_t rank) { return begin(rank + 1) - begin(rank); };
  const size_t own = begin(rank());
  for (int64_t other = 0; other < size(); ++other) {
    receive(other, slot(other), length(rank()));
    send(other, part + begin(other), length(other));
    parts_[static_cast<size_t>(other)] = other == rank() ? part + own : slot(other);
  }
  GPUC_RETURN_IF_ERROR(wait());
  // From here on nobody needs this chunk of `part`, so that `result` may be the same memory.
  sumParts(type, length(rank()) / bytes, parts_, result + own);
  for (int64_t other = 0; other < size(); ++other) {
    receive(other, result + begin(other), length(other));
    send(other, result + own, length(rank()));
  }
  return wait();
}

/// By turns: of each rank's share the same run travels to it, and is packed if it is of several pieces.
Status MeshCommunicator::reduceScatter(DataType type, const Shares& shares,
                                       std::span<const void* const> wholes, std::span<void* const> own) {
  GPUC_RETURN_IF_ERROR(begin(CollectiveKind::reduce_scatter, type, shares.whole_bytes));
  const auto size_in_bytes = static_cast<size_t>(sizeOf(type));
  const ShareRuns runs(shares, size_in_bytes);
  const size_t most = slot_bytes_ / size_in_bytes;
  for (size_t first = 0; first < shares.elements; first += most) {
    const ShareRun run = {first, std::min(first + most, shares.elements)};
    const size_t bytes = (run.end - run.begin) * size_in_bytes;
    for (int64_t other = 0; other < size(); ++other) {
      const std::byte* part = runs.inWholes(static_cast<size_t>(other), run, wholes, packed(other));
      receive(other, slot(other), bytes);
      send(other, part, bytes);
      parts_[static_cast<size_t>(other)] = other == rank() ? part : slot(other);
    }
    GPUC_RETURN_IF_ERROR(wait());
    runs.forEach(run, [&](size_t piece, size_t from, size_t count, size_t) {
      sumParts(type, count, parts_, static_cast<std::byte*>(own[piece]) + from * size_in_bytes);
      for (const std::byte*& part : parts_) part += count * size_in_bytes;
    });
  }
  return okStatus();
}

Status MeshCommunicator::allGather(DataType type, const Shares& shares, std::span<const void* const> own,
                                   std::span<void* const> wholes) {
  GPUC_RETURN_IF_ERROR(begin(CollectiveKind::all_gather, type, shares.whole_bytes));
  const auto size_in_bytes = static_cast<size_t>(sizeOf(type));
  const ShareRuns runs(shares, size_in_bytes);
  const size_t most = slot_bytes_ / size_in_bytes;
  for (size_t first = 0; first < shares.elements; first += most) {
    const ShareRun run = {first, std::min(first + most, shares.elements)};
    const size_t bytes = (run.end - run.begin) * size_in_bytes;
    const std::byte* mine = runs.inShares(run, own, packed(rank()));
    for (int64_t other = 0; other < size(); ++other) {
      receive(other, slot(other), bytes);
      send(other, mine, bytes);
    }
    GPUC_RETURN_IF_ERROR(wait());
    for (int64_t other = 0; other < size(); ++other)
      runs.toWholes(static_cast<size_t>(other), run, other == rank() ? mine : slot(other), wholes);
  }
  return okStatus();
}

Status MeshCommunicator::broadcast(std::span<std::byte> bytes, int64_t root) {
  if (bytes.empty()) return failure_;
  GPUC_RETURN_IF_ERROR(begin(CollectiveKind::broadcast, DataType::ui8, bytes.size()));
  if (rank() == root) GPUC_RETURN_IF_ERROR(checkAlive());
  for (size_t first = 0; first < bytes.size(); first += kChunkBytes) {
    const size_t count = std::min(kChunkBytes, bytes.size() - first);
    if (rank() != root) receive(root, bytes.data() + first, count);
    for (int64_t other = 0; other < size() && rank() == root; ++other)
      send(other, bytes.data() + first, count);
    GPUC_RETURN_IF_ERROR(wait());
  }
  return okStatus();
}

Status MeshCommunicator::gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  if (mine.empty()) return failure_;
  GPUC_RETURN_IF_ERROR(begin(CollectiveKind::gather, DataType::ui8, mine.size()));
  std::memmove(all.data() + static_cast<size_t>(rank()) * mine.size(), mine.data(), mine.size());
  for (size_t first = 0; first < mine.size(); first += kChunkBytes) {
    const size_t count = std::min(kChunkBytes, mine.size() - first);
    for (int64_t other = 0; other < size(); ++other) {
      receive(other, all.data() + static_cast<size_t>(other) * mine.size() + first, count);
      send(other, mine.data() + first, count);
    }
    GPUC_RETURN_IF_ERROR(wait());
  }
  return okStatus();
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void MeshCommunicator::send(int64_t to, const std::byte* bytes, size_t count) {
  if (to != rank() && count > 0) transport_.send(to, label_, {bytes, count});
}

void MeshCommunicator::receive(int64_t from, std::byte* bytes, size_t count) {
  if (from == rank() || count == 0) return;
  awaited_[static_cast<size_t>(from)] = count;
  transport_.receive(from, {bytes, count});
}

Status MeshCommunicator::wait() {
  const Clock::time_point start = Clock::now();
  Clock::time_point next_look = start + kLook;
  for (int64_t idle = 0;; ++idle) {
    if (transport_.progress()) idle = 0;
    GPUC_RETURN_IF_ERROR(checkLines());
    if (isAllDone()) return okStatus();
    if (const Clock::time_point now = Clock::now(); now >= next_look) {
      GPUC_RETURN_IF_ERROR(findLost(now - start >= options_.limit));
      next_look = now + kLook;
    }
    transport_.rest(idle);
  }
}

bool MeshCommunicator::isAllDone() const {
  for (int64_t other = 0; other < size(); ++other)
    if (transport_.line(other).is_receiving || transport_.line(other).sends > 0) return false;
  return true;
}

/// The error if what came is not what was asked for.
Status MeshCommunicator::checkLines() {
  for (int64_t other = 0; other < size(); ++other) {
    const Transport::Line& line = transport_.line(other);
    if (!line.broken.empty()) return lost(other, line.broken);
    if (awaited_[static_cast<size_t>(other)] == 0 || line.is_receiving) continue;
    const size_t awaited = std::exchange(awaited_[static_cast<size_t>(other)], 0);
    if (line.label == kFailed) return lost(other, "failed: " + hearWhy(other));
    if (line.label != label_ || line.length != awaited)
      return lost(other, "asks for something else: all must run the same plan");
  }
  return okStatus();
}

/// Who sends waits for nobody, and would not see that it speaks to a rank that is gone.
Status MeshCommunicator::checkAlive() {
  if (!life_) return okStatus();
  const std::optional<LifeWatch::Loss> loss = life_->lookForEnded();
  if (!loss) return okStatus();
  is_gone_[static_cast<size_t>(loss->rank)] = true;
  return lost(loss->rank, loss->why);
}

void MeshCommunicator::lookForLoss() {
  if (!life_ || loss_) return;
  loss_ = life_->look();
  loss_at_ = Clock::now();
  if (loss_) is_gone_[static_cast<size_t>(loss_->rank)] = true;
}

/// All meet at the end, so that none ends in order before this one has what it needs.
Status MeshCommunicator::look() {
  if (!failure_.ok()) return failure_;
  transport_.progress();
  for (int64_t other = 0; other < size(); ++other)
    if (const std::string& broken = transport_.line(other).broken; !broken.empty())
      return Status::error("rank " + std::to_string(other) + " " + broken);
  lookForLoss();
  return loss_ ? Status::error("rank " + std::to_string(loss_->rank) + " " + loss_->why) : okStatus();
}

/// The error if a rank is lost, whichever it is that this one waits for, or the time is up.
Status MeshCommunicator::findLost(bool time_is_up) {
  lookForLoss();
  if (loss_ && Clock::now() - loss_at_ >= kLastMessages) return lost(loss_->rank, loss_->why);
  for (int64_t other = 0; other < size() && time_is_up; ++other)
    if (const Transport::Line& line = transport_.line(other); line.is_receiving || line.sends > 0)
      return lost(other, "has not come to it in " + std::to_string(options_.limit.count() / 1000) + " s");
  return okStatus();
}

Status MeshCommunicator::lost(int64_t rank, const std::string& why) {
  failure_ = Status::error("rank " + std::to_string(this->rank()) + " waits in collective " +
                           std::to_string(collectives_) + ", but rank " + std::to_string(rank) + " " + why);
  if (tell_failure_) tell_failure_(failure_.message());
  exchangeGoodbyes(failure_.message());
  return failure_;
}

//===----------------------------------------------------------------------===//
// When one fails
//===----------------------------------------------------------------------===//

std::vector<std::string> MeshCommunicator::giveUp(const std::string& why) {
  if (failure_.ok()) {
    failure_ = Status::error("rank " + std::to_string(rank()) + " has given up: " + why);
    exchangeGoodbyes(why);
  }
  return said_;
}

/// Who fails says so with a message that fits wherever another one is expected, and then says why. Whatever
/// comes in place of such messages is of no use any more.
void MeshCommunicator::exchangeGoodbyes(const std::string& why) {
  why.copy(reinterpret_cast<char*>(goodbye_.data()), kWordsBytes - 1);
  for (int64_t other = 0; other < size(); ++other) {
    if (!isListening(other)) continue;
    transport_.send(other, kFailed, {});
    transport_.send(other, kWords, goodbye_);
  }
  progressUntil(options_.patience, [this] {
    bool have_all = true;
    for (int64_t other = 0; other < size(); ++other) have_all &= hasSaidGoodbye(other);
    return have_all;
  });
}

/// Also until the time is up. Where something has come, `is_done` may have more to ask for.
void MeshCommunicator::progressUntil(std::chrono::milliseconds most, const std::function<bool()>& is_done) {
  const Clock::time_point start = Clock::now();
  Clock::time_point next_look = start + kLook;
  for (int64_t idle = 0; !is_done(); ++idle) {
    const bool has_moved = transport_.progress();
    if (has_moved) idle = -1;  // the next one is the first again
    if (const Clock::time_point now = Clock::now(); now >= next_look) {
      if (now - start >= most) return;
      lookForGone();
      next_look = now + kLook;
    }
    if (!has_moved) transport_.rest(idle);
  }
}

void MeshCommunicator::lookForGone() {
  if (!life_) return;
  if (const std::optional<LifeWatch::Loss> loss = life_->look())
    is_gone_[static_cast<size_t>(loss->rank)] = true;
}

/// Listens to a rank until it has, or will say no more.
bool MeshCommunicator::hasSaidGoodbye(int64_t other) {
  Heard& heard = heard_[static_cast<size_t>(other)];
  const Transport::Line& line = transport_.line(other);
  if (heard == Heard::all || !isListening(other)) return true;
  if (line.is_receiving) return false;
  std::byte* words = goodbyes_.data() + static_cast<size_t>(other) * kWordsBytes;
  if (heard == Heard::words) {
    const auto* text = reinterpret_cast<const char*>(words);
    said_[static_cast<size_t>(other)].assign(text, ::strnlen(text, kWordsBytes));
    heard = Heard::all;
    return true;
  }
  if (line.label == kFailed) {
    heard = Heard::words;
    transport_.receive(other, {words, kWordsBytes});
  } else {
    transport_.receive(other, slots_);
  }
  return false;
}

/// Of a rank that has just said that it failed.
std::string MeshCommunicator::hearWhy(int64_t other) {
  progressUntil(kLastWords, [&] { return hasSaidGoodbye(other); });
  return said_[static_cast<size_t>(other)];
}

/// Launchers end all ranks when the first has ended with an error, be it before another has said its own.
void MeshCommunicator::leave() {
  for (int64_t other = 0; other < size(); ++other) {
    if (heard_[static_cast<size_t>(other)] != Heard::all || !isListening(other)) continue;
    transport_.send(other, kLeaving, {});
    transport_.receive(other, slots_);
  }
  progressUntil(options_.patience, [this] {
    for (int64_t other = 0; other < size(); ++other)
      if (heard_[static_cast<size_t>(other)] == Heard::all && isListening(other) &&
          transport_.line(other).is_receiving)
        return false;
    return true;
  });
}

bool MeshCommunicator::isListening(int64_t other) const {
  return other != rank() && !is_gone_[static_cast<size_t>(other)] && transport_.line(other).broken.empty();
}

}  // namespace gpuc
