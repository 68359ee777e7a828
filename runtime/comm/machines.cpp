#include "runtime/comm/machines.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "runtime/comm/rank_sum.h"
#include "runtime/comm/share_runs.h"

namespace gpuc {
namespace {

/// What a network carries in the time that a message takes to begin with: 50 µs at 10 Gbit/s.
constexpr double kMessageBytes = 64 << 10;

}  // namespace

//===----------------------------------------------------------------------===//
// Where ranks are
//===----------------------------------------------------------------------===//

std::optional<Machines> Machines::of(std::span<const Life> lives) {
  Machines machines;
  std::vector<uint64_t> seen;
  for (size_t rank = 0; rank < lives.size(); ++rank) {
    const uint64_t machine = lives[rank].machine;
    if (seen.empty() || machine != seen.back()) {
      if (std::find(seen.begin(), seen.end(), machine) != seen.end()) return std::nullopt;
      seen.push_back(machine);
      machines.first.push_back(0);
    }
    machines.first.back() = static_cast<int64_t>(rank) + 1;
  }
  return machines;
}

int64_t Machines::of(int64_t rank) const {
  return std::upper_bound(first.begin(), first.end(), rank) - first.begin() - 1;
}

int64_t Machines::smallest() const {
  int64_t smallest = first.back();
  for (int64_t machine = 0; machine < count(); ++machine) smallest = std::min(smallest, size(machine));
  return smallest;
}

MachinesCommunicator::MachinesCommunicator(MeshCommunicator& mesh, SharedRanks& memory,
                                           SharedCommunicator& local, Machines machines)
    : mesh_(mesh),
      memory_(memory),
      local_(local),
      machines_(std::move(machines)),
      machine_(machines_.of(mesh.rank())),
      local_rank_(mesh.rank() - machines_.begin(machine_)),
      lanes_(machines_.smallest()),
      slot_bytes_(memory.slotBytes()),
      memory_bytes_(memory.slotBytes() * static_cast<size_t>(memory.size() + 1)),
      parts_(static_cast<size_t>(memory.size())) {
  for (int64_t machine = 0; machine < machines_.count(); ++machine) {
    const size_t slot = SharedRanks::slotBytes(machines_.size(machine));
    slot_bytes_ = std::min(slot_bytes_, slot);
    memory_bytes_ = std::min(memory_bytes_, slot * static_cast<size_t>(machines_.size(machine) + 1));
  }
  // A chunk fills half a slot, and totals have twice as many bytes as 16-bit floats.
  incoming_.resize(slot_bytes_);
  outgoing_.resize(slot_bytes_);
  mesh_.tellFailureTo([this](const std::string& why) {
    memory_.lose(local_rank_, "failed: " + why, SharedRanks::Loss::another);
  });
}

//===----------------------------------------------------------------------===//
// Sums, machine by machine
//===----------------------------------------------------------------------===//

/// Both ways by what the busiest machine receives or sends, and how many messages follow one another. Of
/// rows, a chain sends fewer bytes where machines have several ranks, but waits for each machine in turn.
/// Chunks are of the size by which those that are under way and those that are waited for take the least.
std::optional<MachinesCommunicator::Sums> MachinesCommunicator::plan(DataType type, size_t rows, size_t width,
                                                                     bool are_shared_out) const {
  const auto machines = static_cast<double>(machines_.count()), ranks = static_cast<double>(size());
  double busiest = 0;
  for (int64_t machine = 0; machine < machines_.count(); ++machine) {
    const auto inside = static_cast<double>(machines_.size(machine));
    busiest = std::max(busiest, inside * (ranks - inside) / ranks);
  }
  const size_t row_bytes = width * static_cast<size_t>(sizeOf(type));
  const double bytes = static_cast<double>(rows * row_bytes);
  const double turns = are_shared_out ? 1 : 2;
  const double direct = turns * (kMessageBytes + busiest * bytes);

  const double total = static_cast<double>(totalBytes(type)) / static_cast<double>(sizeOf(type));
  // Between two machines totals go one way, and results the other one.
  const double streams = are_shared_out || machines_.count() == 2 ? total : total + 1;
  const double messages = are_shared_out ? machines : 2 * machines - 2;
  const double waited = std::sqrt(messages * kMessageBytes);
  const double chain = std::pow(std::sqrt(streams * bytes) + waited, 2);

  const size_t most_rows = slot_bytes_ / 2 / row_bytes;
  if (chain >= direct || most_rows == 0) return std::nullopt;
  const double chunk_bytes = std::sqrt(bytes * kMessageBytes / messages);
  return Sums{.type = type,
              .rows = rows,
              .width = width,
              .are_shared_out = are_shared_out,
              .chunk_rows = std::clamp(static_cast<size_t>(chunk_bytes) / row_bytes, size_t{1}, most_rows)};
}

size_t MachinesCommunicator::rowsOf(const Sums& sums, int64_t chunk) {
  return std::min(sums.chunk_rows, sums.rows - static_cast<size_t>(chunk) * sums.chunk_rows);
}

MachinesCommunicator::Slice MachinesCommunicator::sliceOf(const Sums& sums, int64_t chunk,
                                                          int64_t lane) const {
  const size_t rows = rowsOf(sums, chunk), lanes = static_cast<size_t>(lanes_);
  const size_t first = rows * static_cast<size_t>(lane) / lanes,
               end = rows * static_cast<size_t>(lane + 1) / lanes;
  return {.rows = end - first, .first_row = first, .begin = first * sums.width};
}

/// Within a slice the numbers of one rank follow those of another one.
MachinesCommunicator::Range MachinesCommunicator::sentTo(const Sums& sums, const Slice& slice,
                                                         int64_t machine) const {
  if (!sums.are_shared_out) return {0, slice.rows * sums.width};
  return {static_cast<size_t>(machines_.begin(machine)) * slice.rows,
          static_cast<size_t>(machines_.size(machine)) * slice.rows};
}

/// By turns, so that one may be filled while the other one is read.
std::byte* MachinesCommunicator::part(int64_t local_rank, int64_t step) const {
  return memory_.slot(local_rank) + static_cast<size_t>(step % 2) * (memory_.slotBytes() / 2);
}

std::byte* MachinesCommunicator::results(int64_t step) const { return part(memory_.size(), step); }

/// Chunk c is added up by machine m in step c + m, and by the last one of M in step c + M - 1; in the next
/// step it sends the results, to all whose shares they are, or to the machine before it, which hands them on.
int64_t MachinesCommunicator::receivedAt(const Sums& sums, int64_t step) const {
  return step - machines_.count() - (sums.are_shared_out ? 0 : last() - 1 - machine_);
}

/// Behind the step in which they came.
int64_t MachinesCommunicator::takenAt(const Sums& sums, int64_t step) const {
  return machine_ == last() ? step - machines_.count() : receivedAt(sums, step - 1);
}

void MachinesCommunicator::sendAndReceive(const Sums& sums, int64_t step) {
  const auto bytes = static_cast<size_t>(sizeOf(sums.type)), total = totalBytes(sums.type);
  auto slice = [&](int64_t chunk) { return sliceOf(sums, chunk, local_rank_); };
  if (const int64_t chunk = step - machine_; machine_ > 0 && sums.have(chunk))
    mesh_.receive(inLane(machine_ - 1), incoming_.data(), slice(chunk).rows * sums.width * total);
  if (const int64_t chunk = step - 1 - machine_; machine_ < last() && sums.have(chunk))
    mesh_.send(inLane(machine_ + 1), outgoing_.data(), slice(chunk).rows * sums.width * total);

  auto sendResults = [&](int64_t chunk, int64_t machine) {
    const Range range = sentTo(sums, slice(chunk), machine);
    mesh_.send(inLane(machine), results(step - 1) + (slice(chunk).begin + range.begin) * bytes,
               range.count * bytes);
  };
  if (const int64_t chunk = receivedAt(sums, step); machine_ < last() && sums.have(chunk)) {
    const Range range = sentTo(sums, slice(chunk), machine_);
    mesh_.receive(inLane(sums.are_shared_out ? last() : machine_ + 1),
                  results(step) + (slice(chunk).begin + range.begin) * bytes, range.count * bytes);
  }
  if (const int64_t chunk = takenAt(sums, step); sums.have(chunk)) {
    if (!sums.are_shared_out && machine_ > 0) sendResults(chunk, machine_ - 1);
    for (int64_t machine = 0; sums.are_shared_out && machine_ == last() && machine < last(); ++machine)
      sendResults(chunk, machine);
  }
}

void MachinesCommunicator::sumSlice(const Sums& sums, int64_t step) {
  const int64_t chunk = step - machine_;
  if (!sums.have(chunk)) return;
  const Slice slice = sliceOf(sums, chunk, local_rank_);
  const size_t begin = slice.begin * static_cast<size_t>(sizeOf(sums.type));
  for (int64_t rank = 0; rank < memory_.size(); ++rank)
    parts_[static_cast<size_t>(rank)] = part(rank, step) + begin;
  const std::byte* before = machine_ > 0 ? incoming_.data() : nullptr;
  if (machine_ == last())
    sumFromTotals(sums.type, slice.rows * sums.width, before, parts_, results(step) + begin);
  else
    addToTotals(sums.type, slice.rows * sums.width, before, parts_, outgoing_.data());
}

/// put(chunk, where its part is to lie); take(chunk, where its results lie). All messages of a step have come
/// before it ends, so that nobody who waits at a meeting is needed elsewhere.
template <typename Put, typename Take>
Status MachinesCommunicator::addUp(const Sums& sums, Put put, Take take) {
  auto putFor = [&](int64_t step) {
    if (const int64_t chunk = step - machine_; sums.have(chunk)) put(chunk, part(local_rank_, step));
  };
  GPUC_RETURN_IF_ERROR(local_.meetAlike());  // who was in the collective before reads nothing any more
  putFor(0);
  for (int64_t step = 0; takenAt(sums, step) < sums.chunks(); ++step) {
    GPUC_RETURN_IF_ERROR(local_.meet());
    if (hasLane()) sendAndReceive(sums, step);
    putFor(step + 1);
    if (const int64_t chunk = takenAt(sums, step); sums.have(chunk)) take(chunk, results(step - 1));
    if (!hasLane()) continue;
    GPUC_RETURN_IF_ERROR(mesh_.wait());
    sumSlice(sums, step);
  }
  return okStatus();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

Status MachinesCommunicator::look() {
  GPUC_RETURN_IF_ERROR(local_.look());
  return mesh_.look();
}

Status MachinesCommunicator::begin(CollectiveKind kind, DataType type, size_t count) {
  GPUC_RETURN_IF_ERROR(mesh_.begin(kind, type, count));
  return local_.begin(kind, type, count);
}

Status MachinesCommunicator::allReduce(DataType type, size_t elements, const std::byte* part,
                                       std::byte* result) {
  const std::optional<Sums> sums = plan(type, elements, /*width=*/1, /*are_shared_out=*/false);
  if (!sums) {
    GPUC_RETURN_IF_ERROR(local_.begin(CollectiveKind::sum, type, elements));
    return mesh_.allReduce(type, elements, part, result);
  }
  GPUC_RETURN_IF_ERROR(begin(CollectiveKind::sum, type, elements));
  const auto bytes = static_cast<size_t>(sizeOf(type));
  auto place = [&](int64_t chunk) { return static_cast<size_t>(chunk) * sums->chunk_rows * bytes; };
  return addUp(
      *sums,
      [&](int64_t chunk, std::byte* to) {
        std::memcpy(to, part + place(chunk), rowsOf(*sums, chunk) * bytes);
      },
      [&](int64_t chunk, const std::byte* from) {
        std::memcpy(result + place(chunk), from, rowsOf(*sums, chunk) * bytes);
      });
}

/// A row is an element of each rank's share.
Status MachinesCommunicator::reduceScatter(DataType type, const Shares& shares,
                                           std::span<const void* const> wholes, std::span<void* const> own) {
  const auto ranks = static_cast<size_t>(size());
  const std::optional<Sums> sums = plan(type, shares.elements, ranks, /*are_shared_out=*/true);
  if (!sums) {
    GPUC_RETURN_IF_ERROR(local_.begin(CollectiveKind::reduce_scatter, type, shares.whole_bytes));
    return mesh_.reduceScatter(type, shares, wholes, own);
  }
  GPUC_RETURN_IF_ERROR(begin(CollectiveKind::reduce_scatter, type, shares.whole_bytes));
  const auto bytes = static_cast<size_t>(sizeOf(type));
  const ShareRuns runs(shares, bytes);
  auto forEachSlice = [&](int64_t chunk, auto body) {
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      const Slice slice = sliceOf(*sums, chunk, lane);
      const size_t first = static_cast<size_t>(chunk) * sums->chunk_rows + slice.first_row;
      if (slice.rows > 0) body(slice, ShareRun{first, first + slice.rows});
    }
  };
  auto put = [&](int64_t chunk, std::byte* to) {
    forEachSlice(chunk, [&](const Slice& slice, const ShareRun& run) {
      for (size_t rank = 0; rank < ranks; ++rank) {
        std::byte* there = to + (slice.begin + rank * slice.rows) * bytes;
        if (const std::byte* place = runs.inWholes(rank, run, wholes, there); place != there)
          std::memcpy(there, place, slice.rows * bytes);
      }
    });
  };
  auto take = [&](int64_t chunk, const std::byte* from) {
    forEachSlice(chunk, [&](const Slice& slice, const ShareRun& run) {
      const std::byte* mine = from + (slice.begin + static_cast<size_t>(rank()) * slice.rows) * bytes;
      runs.forEach(run, [&](size_t piece, size_t first, size_t count, size_t before) {
        std::memcpy(static_cast<std::byte*>(own[piece]) + first * bytes, mine + before * bytes,
                    count * bytes);
      });
    });
  };
  return addUp(*sums, put, take);
}

/// Each rank's run goes to one rank of every other machine: `runs` are those of all ranks.
void MachinesCommunicator::gatherBetweenMachines(const std::byte* runs, size_t bytes) {
  auto run = [&](int64_t rank) {
    return const_cast<std::byte*>(runs) + static_cast<size_t>(rank) * bytes;  // NOLINT: those of others
  };
  const int64_t inside = machines_.size(machine_);
  for (int64_t machine = 0; machine < machines_.count(); ++machine) {
    if (machine == machine_) continue;
    for (int64_t other = 0; other < machines_.size(machine); ++other)
      if (other % inside == local_rank_)
        mesh_.receive(machines_.begin(machine) + other, run(machines_.begin(machine) + other), bytes);
    mesh_.send(machines_.begin(machine) + local_rank_ % machines_.size(machine), run(rank()), bytes);
  }
}

/// By turns, for which the memory that ranks share is two halves: while a run of each rank comes into one,
/// all take those of the turn before from the other one.
Status MachinesCommunicator::allGather(DataType type, const Shares& shares, std::span<const void* const> own,
                                       std::span<void* const> wholes) {
  const auto bytes = static_cast<size_t>(sizeOf(type));
  const size_t half = memory_bytes_ / 2;
  const size_t most = half / bytes / static_cast<size_t>(size());
  if (most == 0) {
    GPUC_RETURN_IF_ERROR(local_.begin(CollectiveKind::all_gather, type, shares.whole_bytes));
    return mesh_.allGather(type, shares, own, wholes);
  }
  GPUC_RETURN_IF_ERROR(begin(CollectiveKind::all_gather, type, shares.whole_bytes));
  const ShareRuns runs(shares, bytes);
  auto runOf = [&](size_t turn) {
    return ShareRun{std::min(turn * most, shares.elements), std::min((turn + 1) * most, shares.elements)};
  };
  auto place = [&](size_t turn, int64_t rank) {
    return memory_.slot(0) + turn % 2 * half +
           static_cast<size_t>(rank) * (runOf(turn).end - runOf(turn).begin) * bytes;
  };
  GPUC_RETURN_IF_ERROR(local_.meetAlike());
  for (size_t turn = 0; turn == 0 || runOf(turn - 1).end > runOf(turn - 1).begin; ++turn) {
    const ShareRun run = runOf(turn);
    const size_t run_bytes = (run.end - run.begin) * bytes;
    if (run_bytes > 0) {
      std::byte* mine = place(turn, rank());
      if (const std::byte* there = runs.inShares(run, own, mine); there != mine)
        std::memcpy(mine, there, run_bytes);
      gatherBetweenMachines(place(turn, 0), run_bytes);
    }
    for (int64_t rank = 0; turn > 0 && rank < size(); ++rank)
      runs.toWholes(static_cast<size_t>(rank), runOf(turn - 1), place(turn - 1, rank), wholes);
    GPUC_RETURN_IF_ERROR(mesh_.wait());
    GPUC_RETURN_IF_ERROR(local_.meet());
  }
  return okStatus();
}

Status MachinesCommunicator::broadcast(std::span<std::byte> bytes, int64_t root) {
  GPUC_RETURN_IF_ERROR(local_.begin(CollectiveKind::broadcast, DataType::ui8, bytes.size()));
  return mesh_.broadcast(bytes, root);
}

Status MachinesCommunicator::gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  GPUC_RETURN_IF_ERROR(local_.begin(CollectiveKind::gather, DataType::ui8, mine.size()));
  return mesh_.gather(mine, all);
}

}  // namespace gpuc
