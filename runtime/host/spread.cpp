#include "runtime/host/spread.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "runtime/base/min_cut.h"

namespace gpuc {
namespace {

// A fork and join of two threads takes 0.5 us; a shared command between others that are not loses nearly as
// much again to the worker's cold code and lines. With 0.5 in all, a step of GPT 2 layers, of which four were
// shared, took 273 us instead of 235.
constexpr double kForkNs = 700, kForkNsOfThread = 100;
constexpr int64_t kNever = int64_t{1} << 39;

/// What a command takes alone, and what with threads to share it.
struct Work {
  int64_t threads;
  bool divisible = false;
  double alone_ns = 0, spread_ns = 0;

  void add(int64_t tiles, double tile_ns) {
    const double ns = static_cast<double>(tiles) * tile_ns;
    const int64_t parts = std::min(threads, tiles / partGrain(tile_ns));
    divisible |= parts > 1;
    alone_ns += ns;
    spread_ns +=
        parts <= 1 ? ns
                   : ns / static_cast<double>(parts) + kForkNs + kForkNsOfThread * static_cast<double>(parts);
  }
};

Work workOf(const HostCommand& command, int threads) {
  Work work{.threads = threads};
  switch (command.kind) {
    case HostCommand::Kind::launch:
      work.add(command.launch.tiles, command.launch.tile_ns);
      break;
    case HostCommand::Kind::library: {
      const LibraryKernel& kernel = *command.library;
      for (int phase = 0; phase < kernel.phaseCount(); ++phase)
        work.add(kernel.tiles(phase), kernel.tileNs(phase));
      break;
    }
    case HostCommand::Kind::copy:
      if (!command.copy.of_read_input)
        work.add(static_cast<int64_t>(command.copy.bytes / kCopyTileBytes), kCopyTileNs);
      break;
    default:
      break;
  }
  return work;
}

/// How the threads take parts of an operand: whoever takes it in the same way finds what it has written
/// itself.
enum class Cut : uint8_t {
  otherwise,
  in_order,      // parts that lie one behind the other, as of what a kernel computes element by element
  by_iteration,  // such parts of what each iteration of a repeat touches
};

/// Whether the parts of an operand that the threads take lie one behind the other: images, heads and rows
/// come in order, what all tiles read does not.
bool isCutInOrder(const HostCommand& command, uint32_t operand) {
  return command.kind != HostCommand::Kind::library || command.library->isCutInOrder(operand);
}

/// How a command of a parallel whose parts the threads take touches an operand.
Cut cutIntoParts(const HostCommand& command, const CommandAccess& access) {
  if (command.kind == HostCommand::Kind::library && !access.by_rows) return Cut::otherwise;
  return access.end - access.begin == access.bytes ? Cut::in_order : Cut::by_iteration;
}

/// How often each command runs in a step.
std::vector<double> timesOf(const std::vector<HostCommand>& commands) {
  std::vector<double> times(commands.size(), 1);
  for (size_t marker = 0; marker < commands.size(); ++marker)
    if (commands[marker].kind == HostCommand::Kind::repeat)
      for (size_t c = commands[marker].repeat.first; c < marker; ++c)
        times[c] *= static_cast<double>(commands[marker].repeat.count);
  return times;
}

/// What the commands of a parallel take by its parts, and what one by one.
class Fork {
 public:
  Fork(const std::vector<HostCommand>& commands, const std::vector<double>& times, size_t place, int threads)
      : commands_(commands), times_(times), place_(place), threads_(threads) {}

  double forkNs() const {
    return (kForkNs + kForkNsOfThread * std::min<double>(count(), threads_)) * times_[place_];
  }

  /// Of some of the rows a product reads as much of b.
  double spreadNs(size_t command) const {
    const HostCommand& whole = commands_[command];
    if (!fork().by_rows)  // which the threads take in turns
      return workOf(whole, threads_).alone_ns * times_[command] * std::ceil(count() / threads_) / count();
    if (whole.kind != HostCommand::Kind::library)
      return workOf(whole, threads_).alone_ns / count() * times_[command];
    const HostCommand& part = fork().lists->front()[command - place_ - 1];
    return workOf(part, threads_).alone_ns * times_[command];
  }

  /// Whether that is better than to share command by command. Threads that share a product of few rows have
  /// some of b's columns each, and find them in their caches again; by rows each reads all of b.
  bool isWorthIt(const std::vector<CommandAccess>& accesses, uint64_t cache_bytes) const {
    if (fork().by_rows && bytesReadByAll(accesses) > cache_bytes) return false;
    double by_parts = forkNs(), one_by_one = 0;
    for (size_t c = place_ + 1; c <= fork().last; ++c) {
      const Work work = workOf(commands_[c], threads_);
      by_parts += spreadNs(c);
      one_by_one += std::min(work.alone_ns, work.spread_ns) * times_[c];
    }
    return by_parts <= one_by_one;
  }

 private:
  uint64_t bytesReadByAll(const std::vector<CommandAccess>& accesses) const {
    uint64_t bytes = 0;
    for (const CommandAccess& access : accesses)
      if (access.command > place_ && access.command <= fork().last && !access.by_rows &&
          commands_[access.command].kind == HostCommand::Kind::library)
        bytes += access.bytes;
    return bytes;
  }

  const HostCommand::Fork& fork() const { return commands_[place_].fork; }
  double count() const { return static_cast<double>(fork().lists->size()); }

  const std::vector<HostCommand>& commands_;
  const std::vector<double>& times_;
  size_t place_;  // of the Kind::fork
  int threads_;
};

/// For each command the place of the Kind::fork in front of the parallel that it stands in; its own if there
/// is none that is worth it.
std::vector<size_t> placesOfForks(const std::vector<HostCommand>& commands,
                                  const std::vector<CommandAccess>& accesses,
                                  const std::vector<double>& times, int threads, uint64_t cache_bytes) {
  std::vector<size_t> places(commands.size());
  std::iota(places.begin(), places.end(), size_t{0});
  for (size_t c = 0; c < commands.size(); ++c)
    if (commands[c].kind == HostCommand::Kind::fork &&
        Fork(commands, times, c, threads).isWorthIt(accesses, cache_bytes))
      std::fill(places.begin() + static_cast<ptrdiff_t>(c), places.begin() + commands[c].fork.last + 1, c);
  return places;
}

/// Walks a step's commands in the order of execution and adds what it costs when two that touch the same
/// bytes one after the other differ.
class Touches {
 public:
  Touches(const std::vector<HostCommand>& commands, const std::vector<CommandAccess>& accesses,
          const std::vector<size_t>& places_of_forks, uint64_t cache_bytes, double moved_ns_per_byte,
          MinCut& cut)
      : commands_(commands),
        accesses_(accesses),
        places_of_forks_(places_of_forks),
        cache_bytes_(cache_bytes),
        moved_ns_per_byte_(moved_ns_per_byte),
        cut_(cut) {
    first_.resize(commands.size() + 1, accesses.size());
    for (size_t i = accesses.size(); i-- > 0;) first_[accesses[i].command] = i;
    for (size_t c = commands.size(); c-- > 0;) first_[c] = std::min(first_[c], first_[c + 1]);
    for (size_t marker = 0; marker < commands.size(); ++marker)
      if (commands[marker].kind == HostCommand::Kind::repeat)
        repeats_[commands[marker].repeat.first].push_back(marker);
  }

  /// The step before, whose last touches the first ones of this step follow; then this step.
  void walk() {
    run(0, commands_.size(), 0);
    run(0, commands_.size(), 1);
  }

 private:
  /// Of each command in the mean, after which repeats are walked through once: in eight of them, one in the
  /// other, it would be 512 times.
  static constexpr size_t kMostWalks = 64;

  struct Touch {
    uint64_t end;
    size_t command;
    Cut cut;
    bool written;
    uint64_t clock;
  };

  /// Commands [begin, end), `times` times. Of a repeat the first iteration follows what came before, the
  /// others one another.
  void run(size_t begin, size_t end, double times) {
    for (size_t c = begin; c < end; ++c) {
      const size_t marker = repeatAt(c, end);
      if (marker == end) {
        touch(c, times);
        continue;
      }
      const double count = static_cast<double>(commands_[marker].repeat.count);
      if (const bool is_long = walked_ > kMostWalks * commands_.size(); count == 1 || is_long) {
        run(c, marker, times * count);
      } else {
        run(c, marker, times);
        run(c, marker, times * (count - 1));
      }
      c = marker;
    }
  }

  /// The marker of the outermost repeat before `end` that begins with command c; `end` if there is none.
  size_t repeatAt(size_t c, size_t end) const {
    auto found = repeats_.find(c);
    if (found == repeats_.end()) return end;
    auto behind = std::lower_bound(found->second.begin(), found->second.end(), end);
    return behind == found->second.begin() ? end : *std::prev(behind);
  }

  void touch(size_t command, double times) {
    ++walked_;
    if (commands_[command].kind == HostCommand::Kind::copy && commands_[command].copy.of_read_input) return;
    for (size_t i = first_[command]; i < first_[command + 1]; ++i) {
      const CommandAccess& access = accesses_[i];
      const Cut cut = cutOf(command, access);
      for (auto at = splitAt(access.begin); at != last_.end() && at->first < access.end;
           at = last_.erase(at)) {
        splitAt(access.end);
        follow({access.end, command, cut, access.written, clock_}, at->second,
               std::min(at->second.end - at->first, access.bytes), times);
      }
      clock_ += access.bytes;
      last_[access.begin] = {access.end, command, cut, access.written, clock_};
    }
  }

  Cut cutOf(size_t command, const CommandAccess& access) const {
    if (places_of_forks_[command] != command) return cutIntoParts(commands_[command], access);
    return isCutInOrder(commands_[command], access.operand) ? Cut::in_order : Cut::otherwise;
  }

  /// Two that are spread, but not cut alike, move the bytes as well. What all threads read whole is moved
  /// to each: twice as much where one had it all. Otherwise half of it for each of the two that is spread is
  /// a cost of its own, and half for each pair that differs makes up the rest.
  void follow(const Touch& now, const Touch& last, uint64_t bytes, double times) {
    if (last.command == now.command) return;  // the same parts again
    if (now.clock - last.clock >= cache_bytes_) return;
    const auto ns = static_cast<int64_t>(static_cast<double>(bytes) * moved_ns_per_byte_ * times);
    const bool only_read = !now.written && !last.written;
    const bool cut_alike = now.cut == last.cut && now.cut != Cut::otherwise;
    if (only_read || cut_alike) return cut_.addPair(last.command, now.command, ns);
    if (!now.written) {
      cut_.addPair(last.command, now.command, ns);
      return cut_.addCosts(now.command, 0, ns);
    }
    cut_.addPair(last.command, now.command, ns / 2);
    cut_.addCosts(last.command, 0, ns / 2);
    cut_.addCosts(now.command, 0, ns / 2);
  }

  /// Cuts the range that holds `place` in two; the first range from there on.
  std::map<uint64_t, Touch>::iterator splitAt(uint64_t place) {
    auto next = last_.lower_bound(place);
    if (next == last_.begin()) return next;
    auto before = std::prev(next);
    if (before->second.end <= place) return next;
    Touch rest = before->second;
    before->second.end = place;
    return last_.insert(next, {place, rest});
  }

  const std::vector<HostCommand>& commands_;
  const std::vector<CommandAccess>& accesses_;
  const std::vector<size_t>& places_of_forks_;
  std::vector<size_t> first_;                      // of each command's accesses
  std::map<size_t, std::vector<size_t>> repeats_;  // markers, innermost first, by the first command
  uint64_t cache_bytes_;
  double moved_ns_per_byte_;
  MinCut& cut_;
  std::map<uint64_t, Touch> last_;  // by where a range begins
  uint64_t clock_ = 0;              // bytes touched so far
  size_t walked_ = 0;               // commands
};

void addCosts(MinCut& cut, size_t command, double alone_ns, double spread_ns) {
  cut.addCosts(command, static_cast<int64_t>(alone_ns), static_cast<int64_t>(spread_ns));
}

}  // namespace

void chooseSpread(std::vector<HostCommand>& commands, const std::vector<CommandAccess>& accesses, int threads,
                  uint64_t cache_bytes, double moved_bytes_per_ns) {
  if (threads < 2) return;
  MinCut cut(commands.size());
  const std::vector<double> times = timesOf(commands);
  const std::vector<size_t> places_of_forks = placesOfForks(commands, accesses, times, threads, cache_bytes);
  for (size_t c = 0; c < commands.size(); ++c) {
    const Work work = workOf(commands[c], threads);
    const size_t place = places_of_forks[c];
    const bool is_fork = place == c && c + 1 < commands.size() && places_of_forks[c + 1] == c;
    if (is_fork || place != c) {
      // All of the parallel or nothing, with one fork.
      const Fork fork(commands, times, place, threads);
      addCosts(cut, c, work.alone_ns * times[c], is_fork ? fork.forkNs() : fork.spreadNs(c));
      if (!is_fork) cut.addPair(place, c, kNever);
    } else if (work.divisible) {
      addCosts(cut, c, work.alone_ns * times[c], work.spread_ns * times[c]);
    } else {
      cut.addCosts(c, 0, kNever);
    }
  }
  const double moved_ns_per_byte = (1 - 1.0 / threads) / moved_bytes_per_ns;
  Touches(commands, accesses, places_of_forks, cache_bytes, moved_ns_per_byte, cut).walk();
  const std::vector<bool> spread = cut.solve();
  for (size_t c = 0; c < commands.size(); ++c) commands[c].spread = spread[c];
}

uint64_t coreCacheBytes() {
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? static_cast<uint64_t>(bytes) : uint64_t{1} << 20;
}

}  // namespace gpuc
