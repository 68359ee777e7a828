#include "runtime/host/executor.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "runtime/base/clock.h"

namespace gpuc {
namespace {

void launch(const HostCommand& command, ThreadPool& pool) {
  auto tiles = [](const void* context, int64_t begin, int64_t end) {
    const HostCommand& command = *static_cast<const HostCommand*>(context);
    const int64_t first = command.launch.first_tile;
    command.launch.function(command.operands, first + begin, first + end);
  };
  pool.parallelFor(command.launch.tiles, partGrain(command.launch.tile_ns), {tiles, &command});
}

void runLibrary(const HostCommand& command, ThreadPool& pool) {
  struct Phase {
    const LibraryKernel& kernel;
    void* const* operands;
    int phase;
  };
  Phase phase{*command.library, command.operands, 0};
  auto tiles = [](const void* context, int64_t begin, int64_t end) {
    const Phase& phase = *static_cast<const Phase*>(context);
    phase.kernel.run(phase.phase, phase.operands, begin, end);
  };
  for (; phase.phase < phase.kernel.phaseCount(); ++phase.phase)
    pool.parallelFor(phase.kernel.tiles(phase.phase), partGrain(phase.kernel.tileNs(phase.phase)),
                     {tiles, &phase});
}

void copy(const HostCommand& command, ThreadPool& pool) {
  const auto* from = static_cast<const std::byte*>(command.operands[0]);
  auto* to = static_cast<std::byte*>(command.operands[1]);
  const uint64_t bytes = command.copy.bytes;
  if (from == to) return;  // an input that is read in place
  // A plan may copy within a buffer.
  const bool overlaps = from < to + bytes && to < from + bytes;
  if (overlaps) {
    std::memmove(to, from, bytes);
    return;
  }
  auto tiles = [](const void* context, int64_t begin, int64_t end) {
    const HostCommand& command = *static_cast<const HostCommand*>(context);
    const uint64_t first = static_cast<uint64_t>(begin) * kCopyTileBytes;
    const uint64_t last = std::min(static_cast<uint64_t>(end) * kCopyTileBytes, command.copy.bytes);
    std::memcpy(static_cast<std::byte*>(command.operands[1]) + first,
                static_cast<const std::byte*>(command.operands[0]) + first, last - first);
  };
  pool.parallelFor(static_cast<int64_t>((bytes + kCopyTileBytes - 1) / kCopyTileBytes),
                   partGrain(kCopyTileNs), {tiles, &command});
}

void fill(const HostCommand& command) {
  auto* to = static_cast<std::byte*>(command.operands[0]);
  uint64_t bytes = command.fill.bytes;
  if (command.fill.element_bytes == 1) {
    std::memset(to, static_cast<int>(command.fill.pattern & 0xff), bytes);
    return;
  }
  constexpr uint64_t kWord = sizeof(command.fill.pattern);
  uint64_t done = 0;
  for (; done + kWord <= bytes; done += kWord) std::memcpy(to + done, &command.fill.pattern, kWord);
  std::memcpy(to + done, &command.fill.pattern, bytes - done);
}

void record(const HostCommand& command) {
  command.record->records.fetch_add(1, std::memory_order_release);
  command.record->records.notify_all();
}

void wait(HostCommand& command, const SpinPolicy& policy) {
  uint64_t execution = ++command.wait.executions;
  if (execution <= command.wait.distance) return;
  uint64_t needed = execution - command.wait.distance;
  const std::atomic<uint64_t>& records = command.wait.event->records;
  for (uint64_t seen; (seen = records.load(std::memory_order_acquire)) < needed;)
    waitForChange(records, seen, policy);
}

void poison(const HostCommand& command) {
  for (const ByteRange& bytes : *command.poison.dead)
    command.poison.arena->poison(static_cast<uint64_t>(bytes.begin), static_cast<uint64_t>(bytes.end));
}

/// Moves operands on to the next iteration, or back to the first. True if the commands are to be repeated.
bool repeatAgain(HostCommand& command) {
  HostCommand::Repeat& repeat = command.repeat;
  bool again = ++repeat.iteration < repeat.count;
  int64_t iterations = again ? 1 : -static_cast<int64_t>(repeat.count - 1);
  if (!again) repeat.iteration = 0;
  for (const MovingPointer& pointer : *repeat.moving)
    *pointer.entry = static_cast<std::byte*>(*pointer.entry) + pointer.stride * iterations;
  return again;
}

/// Each list is walked by one thread. The profile has what the caller does: of a parallel by rows its first
/// part, which stands for all.
void runParts(const HostCommand& command, const StreamWalk& walk) {
  struct Parts {
    const HostCommand::Fork& fork;
    const StreamWalk& walk;
    std::thread::id caller;

    bool isSeen(int64_t list) const {
      return fork.by_rows ? list == 0 : std::this_thread::get_id() == caller;
    }
  };
  const Parts parts = {command.fork, walk, std::this_thread::get_id()};
  auto run = [](const void* context, int64_t begin, int64_t end) {
    static ProfileRing unseen(0);
    const Parts& parts = *static_cast<const Parts*>(context);
    for (int64_t i = begin; i < end; ++i) {
      StreamWalk part = parts.walk;
      part.commands = &(*parts.fork.lists)[static_cast<size_t>(i)];
      part.delays = nullptr;  // they are one stream's, and parts go side by side
      if (!parts.isSeen(i)) part.profile = &unseen;
      part.run();
    }
  };
  walk.pool->parallelFor(static_cast<int64_t>(command.fork.lists->size()), 1, {run, &parts});
}

}  // namespace

void ProfileRing::appendTo(std::vector<ProfileEvent>& list) const {
  uint64_t kept = std::min<uint64_t>(added_, events_.size());
  for (uint64_t i = added_ - kept; i < added_; ++i) list.push_back(events_[i % events_.size()]);
}

void StreamWalk::run() const {
  const bool profiled = profile->enabled();
  for (size_t i = 0; i < commands->size(); ++i) {
    HostCommand& command = (*commands)[i];
    ThreadPool& threads = command.spread ? *pool : *alone;
    if (delays) delays->beforeCommand();
    int64_t begin = profiled ? nowNs() : 0;
    switch (command.kind) {
      case HostCommand::Kind::launch:
        launch(command, threads);
        break;
      case HostCommand::Kind::library:
        runLibrary(command, threads);
        break;
      case HostCommand::Kind::copy:
        // A copy on a stream of its own leaves the pool to what it runs beside.
        copy(command, stream == 0 ? threads : *alone);
        break;
      case HostCommand::Kind::fill:
        fill(command);
        break;
      case HostCommand::Kind::record:
        record(command);
        break;
      case HostCommand::Kind::wait:
        wait(command, policy);
        break;
      case HostCommand::Kind::repeat:
        if (repeatAgain(command)) i = size_t{command.repeat.first} - 1;  // wraps to before 0, the loop adds 1
        continue;
      case HostCommand::Kind::fork:
        if (!command.spread) continue;
        runParts(command, *this);
        i = command.fork.last;
        continue;
      case HostCommand::Kind::poison:
        poison(command);
        continue;
    }
    if (profiled) profile->add({command.source, program, stream, begin, nowNs()});
  }
}

}  // namespace gpuc
