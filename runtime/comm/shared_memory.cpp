#include "runtime/comm/shared_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "runtime/base/descriptor.h"
#include "runtime/comm/cores.h"
#include "runtime/comm/launch.h"
#include "runtime/comm/rank_sum.h"
#include "runtime/comm/share_runs.h"

namespace gpuc {
namespace {

/// Of a slot: long, so that ranks meet seldom, but of many ranks all together no more than so many.
constexpr size_t kMostSlotBytes = size_t{4} << 20, kLeastSlotBytes = size_t{1} << 18,
                 kAllSlotBytes = size_t{64} << 20;
constexpr size_t kCacheLine = 64, kPage = 4096;

constexpr const char* kMemoryName = "gpuc-ranks";

using Clock = std::chrono::steady_clock;

/// How often a rank looks whether others live.
constexpr std::chrono::milliseconds kLook{20};
/// How often messages of its own go on.
constexpr std::chrono::milliseconds kProgress{1};

/// Sleeps until the word is not `seen` any more, or for so long; or less.
void sleepWhile(std::atomic<uint32_t>& word, uint32_t seen, std::chrono::nanoseconds most) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(most);
  const timespec time = {.tv_sec = seconds.count(), .tv_nsec = (most - seconds).count()};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

/// The path was made of numbers that came in a message, and may be any file of any process: it is opened if
/// it is what ranks share, and of this length.
Descriptor openMemoryOfRanks(const std::string& path, size_t bytes) {
  std::array<char, 64> target = {};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  const std::string_view name(target.data(), static_cast<size_t>(std::max<ssize_t>(length, 0)));
  if (!name.starts_with(std::string("/memfd:") + kMemoryName)) return Descriptor();
  Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status = {};
  const bool is_as_long =
      file.ok() && ::fstat(file.get(), &status) == 0 && status.st_size == static_cast<off_t>(bytes);
  return is_as_long ? std::move(file) : Descriptor();
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
  std::atomic<uint32_t> events = 0;      // grows with all that somebody may wait for
  std::atomic<uint32_t> sleepers = 0;    // that wait for it to do so
  std::atomic<int64_t> first_lost = -1;  // and not in order: others fail because of it
};

size_t SharedRanks::slotBytes(int64_t ranks) {
  return std::clamp(std::bit_floor(kAllSlotBytes / static_cast<size_t>(ranks + 1)), kLeastSlotBytes,
                    kMostSlotBytes);
}

/// | header | state of each rank | slot of each rank | sums |
SharedRanks::SharedRanks(int64_t ranks) : ranks_(ranks), slot_bytes_(slotBytes(ranks)) {
  const size_t states = static_cast<size_t>(ranks) * sizeof(RankState) + kCacheLine;
  const size_t slots = static_cast<size_t>(ranks + 1) * slot_bytes_;
  bytes_ = (states + kPage - 1) / kPage * kPage + slots;
}

Status SharedRanks::map(int file, int flags) {
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | flags, file, 0);
  if (memory == MAP_FAILED)
    return errorf("no memory for what %lld ranks share: %zu bytes", static_cast<long long>(ranks_), bytes_);
  header_ = static_cast<Header*>(memory);
  return okStatus();
}

void SharedRanks::begin() {
  new (header_) Header;
  for (int64_t rank = 0; rank < ranks_; ++rank) new (&state(rank)) RankState;
}

Result<SharedRanks> SharedRanks::create(int64_t ranks) {
  if (ranks < 1 || ranks > kMostRanks)
    return errorf("%lld ranks: from 1 to %lld can share memory", static_cast<long long>(ranks),
                  static_cast<long long>(kMostRanks));
  SharedRanks shared(ranks);
  GPUC_RETURN_IF_ERROR(shared.map(-1, MAP_ANONYMOUS));
  shared.begin();
  return shared;
}

/// By way of /proc: a file of /dev/shm would outlive ranks that are killed.
Result<std::optional<SharedRanks>> SharedRanks::meet(Communicator& ranks, int64_t first, int64_t count) {
  struct File {
    int64_t process = ::getpid();
    int64_t number = -1;
  } file;
  SharedRanks shared(count);
  const bool is_first = ranks.rank() == first;
  Descriptor own(is_first ? ::memfd_create(kMemoryName, MFD_CLOEXEC) : -1);
  if (own.ok() && ::ftruncate(own.get(), static_cast<off_t>(shared.bytes_)) == 0 &&
      shared.map(own.get(), 0).ok()) {
    shared.begin();
    file.number = own.get();
  }
  std::vector<File> files(static_cast<size_t>(ranks.size()));
  GPUC_RETURN_IF_ERROR(
      ranks.gather(std::as_bytes(std::span(&file, 1)), std::as_writable_bytes(std::span(files))));
  file = files[static_cast<size_t>(first)];
  if (!is_first && file.number >= 0) {
    const std::string path = "/proc/" + std::to_string(file.process) + "/fd/" + std::to_string(file.number);
    const Descriptor theirs = openMemoryOfRanks(path, shared.bytes_);
    if (theirs.ok()) (void)shared.map(theirs.get(), 0).ok();
  }
  const auto has_it = static_cast<std::byte>(shared.header_ != nullptr);
  std::vector<std::byte> all(static_cast<size_t>(ranks.size()));
  GPUC_RETURN_IF_ERROR(ranks.gather({&has_it, 1}, all));
  if (std::find(all.begin(), all.end(), std::byte{0}) != all.end()) return std::optional<SharedRanks>();
  return std::optional(std::move(shared));
}

SharedRanks::SharedRanks(SharedRanks&& other) noexcept
    : ranks_(other.ranks_),
      slot_bytes_(other.slot_bytes_),
      header_(std::exchange(other.header_, nullptr)),
      bytes_(other.bytes_) {}

SharedRanks::~SharedRanks() {
  if (header_) ::munmap(header_, bytes_);
}

RankState& SharedRanks::state(int64_t rank) const {
  std::byte* first = reinterpret_cast<std::byte*>(header_) + kCacheLine;
  return reinterpret_cast<RankState*>(first)[rank];
}

std::byte* SharedRanks::slot(int64_t rank) const {
  std::byte* end = reinterpret_cast<std::byte*>(header_) + bytes_;
  return end - static_cast<size_t>(ranks_ + 1 - rank) * slot_bytes_;
}

/// Who is about to sleep has said so before, and does not where `events` has grown by then.
void SharedRanks::wakeAll() const {
  header_->events.fetch_add(1);
  if (header_->sleepers.load() > 0) wake(header_->events);
}

void SharedRanks::lose(int64_t rank, const std::string& why, Loss loss) {
  RankState& lost = state(rank);
  auto none = static_cast<uint32_t>(Loss::none);
  if (!lost.loss.compare_exchange_strong(none, static_cast<uint32_t>(Loss::being_written))) return;
  why.copy(lost.lost, RankState::kMostText - 1);
  lost.loss = static_cast<uint32_t>(loss);
  int64_t nobody = -1;
  if (loss != Loss::in_order) header_->first_lost.compare_exchange_strong(nobody, rank);
  wakeAll();
}

//===----------------------------------------------------------------------===//
// Meetings
//===----------------------------------------------------------------------===//

SharedCommunicator::SharedCommunicator(SharedRanks& ranks, int64_t rank, std::chrono::milliseconds limit,
                                       LifeWatch* life, RanksElsewhere elsewhere)
    : ranks_(ranks),
      rank_(rank),
      limit_(limit),
      life_(life),
      elsewhere_(std::move(elsewhere)),
      is_crowded_(ranks.size() > coresOfThisProcess()),
      parts_(static_cast<size_t>(ranks.size())) {}

Status SharedCommunicator::lost(int64_t rank, const std::string& why) {
  failure_ = Status::error("rank " + std::to_string(elsewhere_.ranks_before + rank_) +
                           " waits in collective " + std::to_string(collectives_) + ", but rank " +
                           std::to_string(elsewhere_.ranks_before + rank) + " " + why);
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
  for (int64_t before = 0; yields_.next(before, Yields::most(is_crowded_)); ++before) {
    if (haveAllArrived()) return okStatus();
    if (elsewhere_.progress) elsewhere_.progress();
  }
  const Clock::time_point end = Clock::now() + limit_;
  while (true) {
    std::atomic<uint32_t>& events = ranks_.header_->events;
    const uint32_t seen = events.load();
    if (haveAllArrived()) return okStatus();
    const Clock::duration left = end - Clock::now();
    GPUC_RETURN_IF_ERROR(findMissing(left <= Clock::duration::zero()));
    if (elsewhere_.progress) elsewhere_.progress();
    const Clock::duration most = elsewhere_.progress ? kProgress : life_ ? kLook : left;
    ranks_.header_->sleepers.fetch_add(1);
    sleepWhile(events, seen, std::min(left, most));
    ranks_.header_->sleepers.fetch_sub(1);
    lookForLost();
  }
}

void SharedCommunicator::lookForLost() {
  if (!life_ || Clock::now() < next_look_) return;
  next_look_ = Clock::now() + kLook;
  if (const std::optional<LifeWatch::Loss> loss = life_->look()) ranks_.lose(loss->rank, loss->why);
}

/// The error if this meeting cannot be: a rank is lost, or the time is up. Whoever has ended in order may
/// have been there before. Who is lost by itself is named before who gave up because of it.
Status SharedCommunicator::findMissing(bool time_is_up) {
  for (SharedRanks::Loss loss :
       {SharedRanks::Loss::itself, SharedRanks::Loss::another, SharedRanks::Loss::in_order})
    for (int64_t rank = 0; rank < ranks_.size(); ++rank) {
      const RankState& other = ranks_.state(rank);
      const bool is_lost = other.loss.load() == static_cast<uint32_t>(loss);
      if (is_lost && other.arrived.load() < meetings_) return lost(rank, other.lost);
    }
  for (int64_t rank = 0; rank < ranks_.size() && time_is_up; ++rank)
    if (ranks_.state(rank).arrived.load() < meetings_)
      return lost(rank, "has not come to it in " + std::to_string(limit_.count() / 1000) + " s");
  return okStatus();
}

Status SharedCommunicator::look() {
  if (!failure_.ok()) return failure_;
  lookForLost();
  const int64_t first = ranks_.header_->first_lost.load();
  if (first >= 0 && first != rank_)
    failure_ = Status::error("rank " + std::to_string(elsewhere_.ranks_before + first) + " " +
                             ranks_.state(first).lost);
  return failure_;
}

/// What is asked for, as a number: two that differ have another kind, type or length.
Status SharedCommunicator::begin(CollectiveKind kind, DataType type, size_t count) {
  if (!failure_.ok()) return failure_;
  ++collectives_;
  ranks_.state(rank_).asks.store(uint64_t{count} << 16 | uint64_t(type) << 8 | uint64_t(kind));
  return okStatus();
}

/// The meeting at which all slots are filled. It is the first of a collective, too, and all that are there
/// stay in it until the next meeting, so that what they ask for can be compared.
Status SharedCommunicator::meetAlike() {
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
  GPUC_RETURN_IF_ERROR(begin(CollectiveKind::sum, type, elements));
  const auto size = static_cast<size_t>(sizeOf(type)), ranks = static_cast<size_t>(ranks_.size());
  const size_t most = ranks_.slotBytes() / size;
  for (size_t first = 0; first < elements; first += most) {
    const size_t count = std::min(most, elements - first);
    std::memcpy(ranks_.slot(rank_), part + first * size, count * size);
    GPUC_RETURN_IF_ERROR(meetAlike());
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
Status SharedCommunicator::reduceScatter(DataType type, const Shares& shares,
                                         std::span<const void* const> wholes, std::span<void* const> own) {
  GPUC_RETURN_IF_ERROR(begin(CollectiveKind::reduce_scatter, type, shares.whole_bytes));
  const auto size = static_cast<size_t>(sizeOf(type)), ranks = static_cast<size_t>(ranks_.size());
  const ShareRuns runs(shares, size);
  const size_t most = ranks_.slotBytes() / size / ranks;
  for (size_t first = 0; first < shares.elements; first += most) {
    const ShareRun run = {first, std::min(first + most, shares.elements)};
    const size_t bytes = (run.end - run.begin) * size;
    for (size_t rank = 0; rank < ranks; ++rank) {
      std::byte* slot = ranks_.slot(rank_) + rank * bytes;
      if (const std::byte* place = runs.inWholes(rank, run, wholes, slot); place != slot)
        std::memcpy(slot, place, bytes);
    }
    GPUC_RETURN_IF_ERROR(meetAlike());
    runs.forEach(run, [&](size_t piece, size_t from, size_t count, size_t before) {
      for (size_t rank = 0; rank < ranks; ++rank)
        parts_[rank] =
            ranks_.slot(static_cast<int64_t>(rank)) + static_cast<size_t>(rank_) * bytes + before * size;
      sumParts(type, count, parts_, static_cast<std::byte*>(own[piece]) + from * size);
    });
    GPUC_RETURN_IF_ERROR(meet());
  }
  return okStatus();
}

Status SharedCommunicator::allGather(DataType type, const Shares& shares, std::span<const void* const> own,
                                     std::span<void* const> wholes) {
  GPUC_RETURN_IF_ERROR(begin(CollectiveKind::all_gather, type, shares.whole_bytes));
  const auto size = static_cast<size_t>(sizeOf(type));
  const ShareRuns runs(shares, size);
  const size_t most = ranks_.slotBytes() / size;
  for (size_t first = 0; first < shares.elements; first += most) {
    const ShareRun run = {first, std::min(first + most, shares.elements)};
    std::byte* slot = ranks_.slot(rank_);
    if (const std::byte* place = runs.inShares(run, own, slot); place != slot)
      std::memcpy(slot, place, (run.end - run.begin) * size);
    GPUC_RETURN_IF_ERROR(meetAlike());
    for (int64_t rank = 0; rank < ranks_.size(); ++rank)
      runs.toWholes(static_cast<size_t>(rank), run, ranks_.slot(rank), wholes);
    GPUC_RETURN_IF_ERROR(meet());
  }
  return okStatus();
}

/// Through the root's slot: of a sum before this, some may be reading yet.
Status SharedCommunicator::broadcast(std::span<std::byte> bytes, int64_t root) {
  if (bytes.empty()) return failure_;
  GPUC_RETURN_IF_ERROR(begin(CollectiveKind::broadcast, DataType::ui8, bytes.size()));
  for (size_t first = 0; first < bytes.size(); first += ranks_.slotBytes()) {
    const size_t count = std::min(ranks_.slotBytes(), bytes.size() - first);
    if (rank_ == root) std::memcpy(ranks_.slot(root), bytes.data() + first, count);
    GPUC_RETURN_IF_ERROR(meetAlike());
    if (rank_ != root) std::memcpy(bytes.data() + first, ranks_.slot(root), count);
    GPUC_RETURN_IF_ERROR(meet());
  }
  return okStatus();
}

Status SharedCommunicator::gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  if (mine.empty()) return failure_;
  GPUC_RETURN_IF_ERROR(begin(CollectiveKind::gather, DataType::ui8, mine.size()));
  for (size_t first = 0; first < mine.size(); first += ranks_.slotBytes()) {
    const size_t count = std::min(ranks_.slotBytes(), mine.size() - first);
    std::memcpy(ranks_.slot(rank_), mine.data() + first, count);
    GPUC_RETURN_IF_ERROR(meetAlike());
    for (int64_t rank = 0; rank < ranks_.size(); ++rank)
      std::memcpy(all.data() + static_cast<size_t>(rank) * mine.size() + first, ranks_.slot(rank), count);
    GPUC_RETURN_IF_ERROR(meet());
  }
  return okStatus();
}

}  // namespace gpuc
