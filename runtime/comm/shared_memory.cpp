#include "runtime/comm/shared_memory.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/comm/launch.h"
#include "runtime/comm/rank_sum.h"
#include "runtime/comm/share_runs.h"

namespace gpuc {
namespace {

constexpr size_t kSlotBytes = size_t{1} << 20;
constexpr size_t kCacheLine = 64;

using Clock = std::chrono::steady_clock;

/// Sleeps until the word is not `seen` any more, or for so long; or less.
void sleepWhile(std::atomic<uint32_t>& word, uint32_t seen, std::chrono::nanoseconds most) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(most);
  const timespec time = {.tv_sec = seconds.count(), .tv_nsec = (most - seconds).count()};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

void wake(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free,
              "processes share them");

}  // namespace

//===----------------------------------------------------------------------===//
// The memory
//===----------------------------------------------------------------------===//

struct SharedRanks::Header {
  std::atomic<uint32_t> events = 0;  // grows with all that somebody may wait for
};

/// | header | state of each rank | slot of each rank | sums |
Result<SharedRanks> SharedRanks::create(int64_t ranks) {
  if (ranks < 1 || ranks > kMostRanks)
    return errorf("%lld ranks: from 1 to %lld can share memory", static_cast<long long>(ranks),
                  static_cast<long long>(kMostRanks));
  SharedRanks shared;
  const size_t states = static_cast<size_t>(ranks) * sizeof(RankState) + kCacheLine;
  shared.ranks_ = ranks;
  shared.bytes_ =
      (states + kSlotBytes - 1) / kSlotBytes * kSlotBytes + static_cast<size_t>(ranks + 1) * kSlotBytes;
  void* memory = ::mmap(nullptr, shared.bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return errorf("no memory for what %lld ranks share: %zu bytes", static_cast<long long>(ranks),
                  shared.bytes_);
  shared.header_ = new (memory) Header;
  for (int64_t rank = 0; rank < ranks; ++rank) new (&shared.state(rank)) RankState;
  return shared;
}

SharedRanks::SharedRanks(SharedRanks&& other) noexcept
    : ranks_(other.ranks_), header_(std::exchange(other.header_, nullptr)), bytes_(other.bytes_) {}

SharedRanks::~SharedRanks() {
  if (header_) ::munmap(header_, bytes_);
}

RankState& SharedRanks::state(int64_t rank) const {
  std::byte* first = reinterpret_cast<std::byte*>(header_) + kCacheLine;
  return reinterpret_cast<RankState*>(first)[rank];
}

std::byte* SharedRanks::slot(int64_t rank) const {
  std::byte* end = reinterpret_cast<std::byte*>(header_) + bytes_;
  return end - static_cast<size_t>(ranks_ + 1 - rank) * kSlotBytes;
}

void SharedRanks::wakeAll() const {
  header_->events.fetch_add(1);
  wake(header_->events);
}

void SharedRanks::lose(int64_t rank, const std::string& why) {
  RankState& lost = state(rank);
  if (lost.is_lost.load() != 0) return;
  why.copy(lost.lost, RankState::kMostText - 1);
  lost.is_lost = 1;
  wakeAll();
}

//===----------------------------------------------------------------------===//
// Meetings
//===----------------------------------------------------------------------===//

SharedCommunicator::SharedCommunicator(SharedRanks& ranks, int64_t rank, std::chrono::milliseconds limit)
    : ranks_(ranks), rank_(rank), limit_(limit), parts_(static_cast<size_t>(ranks.size())) {}

Status SharedCommunicator::lost(int64_t rank, const std::string& why) {
  failure_ = Status::error("rank " + std::to_string(rank_) + " waits in collective " +
                           std::to_string(collectives_) + ", but rank " + std::to_string(rank) + " " + why);
  return failure_;
}

bool SharedCommunicator::haveAllArrived() const {
  for (int64_t rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_.state(rank).arrived.load() < meetings_) return false;
  return true;
}

/// The last to come wakes the others, once. If it ends before it does, lose() wakes them.
Status SharedCommunicator::meet() {
  ++meetings_;
  ranks_.state(rank_).arrived.store(meetings_);
  if (haveAllArrived()) {
    ranks_.wakeAll();
    return okStatus();
  }
  const Clock::time_point end = Clock::now() + limit_;
  while (true) {
    std::atomic<uint32_t>& events = ranks_.header_->events;
    const uint32_t seen = events.load();
    if (haveAllArrived()) return okStatus();
    const Clock::duration left = end - Clock::now();
    GPUC_RETURN_IF_ERROR(findMissing(left <= Clock::duration::zero()));
    sleepWhile(events, seen, left);
  }
}

/// The error if this meeting cannot be: a rank is lost, or the time is up. Whoever has ended in order may
/// have been there before.
Status SharedCommunicator::findMissing(bool time_is_up) {
  for (int64_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankState& other = ranks_.state(rank);
    const bool is_lost = other.is_lost.load() != 0;
    if (is_lost && other.arrived.load() < meetings_) return lost(rank, other.lost);
  }
  for (int64_t rank = 0; rank < ranks_.size() && time_is_up; ++rank)
    if (ranks_.state(rank).arrived.load() < meetings_)
      return lost(rank, "has not come to it in " + std::to_string(limit_.count() / 1000) + " s");
  return okStatus();
}

/// What is asked for, as a number: two that differ have another kind, type or length.
Status SharedCommunicator::begin(Kind kind, DataType type, size_t count) {
  if (!failure_.ok()) return failure_;
  ++collectives_;
  ranks_.state(rank_).asks.store(uint64_t{count} << 16 | uint64_t(type) << 8 | uint64_t(kind));
  return okStatus();
}

/// The meeting at which all slots are filled. It is the first of a collective, too, and all that are there
/// stay in it until the next meeting, so that what they ask for can be compared.
Status SharedCommunicator::meetWithSlots() {
  GPUC_RETURN_IF_ERROR(meet());
  const uint64_t wish = ranks_.state(rank_).asks.load();
  for (int64_t rank = 0; rank < ranks_.size(); ++rank)
    if (const uint64_t other = ranks_.state(rank).asks.load(); other != wish)
      return lost(rank, "asks for " + std::to_string(other >> 16) + " elements in it, not for " +
                            std::to_string(wish >> 16) + ", or in another way: all must run the same plan");
  return okStatus();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

Status SharedCommunicator::allReduce(DataType type, size_t elements, const std::byte* part,
                                     std::byte* result) {
  if (elements == 0) return failure_;
  GPUC_RETURN_IF_ERROR(begin(Kind::sum, type, elements));
  const auto size = static_cast<size_t>(sizeOf(type)), ranks = static_cast<size_t>(ranks_.size());
  const size_t most = kSlotBytes / size;
  for (size_t first = 0; first < elements; first += most) {
    const size_t count = std::min(most, elements - first);
    std::memcpy(ranks_.slot(rank_), part + first * size, count * size);
    GPUC_RETURN_IF_ERROR(meetWithSlots());
    const size_t begin = count * static_cast<size_t>(rank_) / ranks,
                 end = count * static_cast<size_t>(rank_ + 1) / ranks;
    for (size_t rank = 0; rank < ranks; ++rank)
      parts_[rank] = ranks_.slot(static_cast<int64_t>(rank)) + begin * size;
    sumParts(type, end - begin, parts_, ranks_.sums() + begin * size);
    GPUC_RETURN_IF_ERROR(meet());
    // Nobody adds to the next sums before all have met again, each with what it took of these.
    std::memcpy(result + first * size, ranks_.sums(), count * size);
  }
  return okStatus();
}

/// By turns: a slot holds, for each rank, the same run of its share.
Status SharedCommunicator::reduceScatter(DataType type, const Shares& shares, const std::byte* whole,
                                         std::byte* share) {
  GPUC_RETURN_IF_ERROR(begin(Kind::reduce_scatter, type, shares.whole_bytes));
  const auto size = static_cast<size_t>(sizeOf(type)), ranks = static_cast<size_t>(ranks_.size());
  const ShareRuns runs(shares, size);
  const size_t most = kSlotBytes / size / ranks;
  for (size_t first = 0; first < shares.elements; first += most) {
    const ShareRun run = {first, std::min(first + most, shares.elements)};
    const size_t bytes = (run.end - run.begin) * size;
    for (size_t rank = 0; rank < ranks; ++rank) {
      std::byte* slot = ranks_.slot(rank_) + rank * bytes;
      if (const std::byte* place = runs.inWhole(rank, run, whole, slot); place != slot)
        std::memcpy(slot, place, bytes);
    }
    GPUC_RETURN_IF_ERROR(meetWithSlots());
    runs.forEach(run, [&](const Piece& piece, size_t from, size_t count, size_t before) {
      for (size_t rank = 0; rank < ranks; ++rank)
        parts_[rank] =
            ranks_.slot(static_cast<int64_t>(rank)) + static_cast<size_t>(rank_) * bytes + before * size;
      sumParts(type, count, parts_, share + piece.share_offset + from * size);
    });
    GPUC_RETURN_IF_ERROR(meet());
  }
  return okStatus();
}

Status SharedCommunicator::allGather(DataType type, const Shares& shares, const std::byte* share,
                                     std::byte* whole) {
  GPUC_RETURN_IF_ERROR(begin(Kind::all_gather, type, shares.whole_bytes));
  const auto size = static_cast<size_t>(sizeOf(type));
  const ShareRuns runs(shares, size);
  const size_t most = kSlotBytes / size;
  for (size_t first = 0; first < shares.elements; first += most) {
    const ShareRun run = {first, std::min(first + most, shares.elements)};
    std::byte* slot = ranks_.slot(rank_);
    if (const std::byte* place = runs.inShare(run, share, slot); place != slot)
      std::memcpy(slot, place, (run.end - run.begin) * size);
    GPUC_RETURN_IF_ERROR(meetWithSlots());
    for (int64_t rank = 0; rank < ranks_.size(); ++rank)
      runs.toWhole(static_cast<size_t>(rank), run, ranks_.slot(rank), whole);
    GPUC_RETURN_IF_ERROR(meet());
  }
  return okStatus();
}

/// Through the root's slot: of a sum before this, some may be reading yet.
Status SharedCommunicator::broadcast(std::span<std::byte> bytes, int64_t root) {
  if (bytes.empty()) return failure_;
  GPUC_RETURN_IF_ERROR(begin(Kind::broadcast, DataType::ui8, bytes.size()));
  for (size_t first = 0; first < bytes.size(); first += kSlotBytes) {
    const size_t count = std::min(kSlotBytes, bytes.size() - first);
    if (rank_ == root) std::memcpy(ranks_.slot(root), bytes.data() + first, count);
    GPUC_RETURN_IF_ERROR(meetWithSlots());
    if (rank_ != root) std::memcpy(bytes.data() + first, ranks_.slot(root), count);
    GPUC_RETURN_IF_ERROR(meet());
  }
  return okStatus();
}

Status SharedCommunicator::gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  if (mine.empty()) return failure_;
  GPUC_RETURN_IF_ERROR(begin(Kind::gather, DataType::ui8, mine.size()));
  for (size_t first = 0; first < mine.size(); first += kSlotBytes) {
    const size_t count = std::min(kSlotBytes, mine.size() - first);
    std::memcpy(ranks_.slot(rank_), mine.data() + first, count);
    GPUC_RETURN_IF_ERROR(meetWithSlots());
    for (int64_t rank = 0; rank < ranks_.size(); ++rank)
      std::memcpy(all.data() + static_cast<size_t>(rank) * mine.size() + first, ranks_.slot(rank), count);
    GPUC_RETURN_IF_ERROR(meet());
  }
  return okStatus();
}

}  // namespace gpuc
