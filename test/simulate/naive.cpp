#include "test/simulate/naive.h"

#include <map>
#include <tuple>

namespace gpuc {
namespace {

using Kind = Schedule::Kind;

class Definition {
public:
  Definition(const Schedule &schedule, const World &world) : schedule_(schedule), world_(world) {}

  /// When a stream of a rank has ended its first `commands` commands of a step.
  double end(int64_t rank, int64_t step, size_t stream, size_t commands) {
    if (commands == 0)
      return begin(rank, step, stream);
    auto [entry, is_new] = known_.try_emplace({rank, step, stream, commands}, 0);
    if (!is_new)
      return entry->second;
    const Schedule::Command &command = schedule_.streams[stream].commands[commands - 1];
    double start = end(rank, step, stream, commands - 1);
    double takes = command.nanoseconds * slowness(rank);
    if (command.kind == Kind::exchange) {
      for (int64_t other = 0; other < world_.ranks; ++other)
        start = std::max(start, end(other, step, stream, commands - 1));
      takes = world_.ranks == 1 ? command.nanoseconds : world_.exchangeNanoseconds(command.bytes);
    }
    if (command.kind == Kind::wait)
      start = std::max(start, recorded(rank, step, command));
    if (command.kind == Kind::record)
      takes += copies(rank, command.event);
    return known_[{rank, step, stream, commands}] = start + takes;
  }

private:
  double slowness(int64_t rank) const {
    return rank < world_.ranks - world_.disturbance.stragglers ? 1 : world_.disturbance.slowdown;
  }

  double begin(int64_t rank, int64_t step, size_t stream) {
    const double head = schedule_.stepNanoseconds * slowness(rank);
    double before = 0;
    for (size_t other = 0; step > 0 && other < schedule_.streams.size(); ++other)
      if (other == stream || schedule_.joins)
        before = std::max(before, end(rank, step - 1, other, schedule_.streams[other].commands.size()));
    return before + head;
  }

  /// When what a wait waits for is seen; 0 of what was before the first step.
  double recorded(int64_t rank, int64_t step, const Schedule::Command &wait) {
    std::vector<std::pair<size_t, size_t>> records; // stream and place, of a step
    for (size_t stream = 0; stream < schedule_.streams.size(); ++stream)
      for (size_t place = 0; place < schedule_.streams[stream].commands.size(); ++place) {
        const Schedule::Command &command = schedule_.streams[stream].commands[place];
        if (command.kind == Kind::record && command.event == wait.event)
          records.push_back({stream, place + 1});
      }
    const auto each = static_cast<int64_t>(records.size());
    const int64_t execution = step * each + wait.ordinal - wait.distance;
    if (execution < 0)
      return 0;
    const auto [stream, place] = records[static_cast<size_t>(execution % each)];
    return end(rank, execution / each, stream, place) - copies(rank, wait.event) +
           schedule_.handoffNanoseconds;
  }

  /// Of an event, by all exchanges whose last wait before them is for it, in equal parts for each record.
  double copies(int64_t rank, unsigned event) const {
    double bytes = 0, records = 0;
    for (const Schedule::Stream &stream : schedule_.streams) {
      for (size_t place = 0; place < stream.commands.size(); ++place) {
        records += stream.commands[place].kind == Kind::record && stream.commands[place].event == event;
        if (stream.commands[place].kind != Kind::exchange)
          continue;
        size_t before = place;
        while (before > 0 && stream.commands[before].kind != Kind::wait)
          --before;
        if (stream.commands[before].kind == Kind::wait && stream.commands[before].event == event)
          bytes += static_cast<double>(stream.commands[place].bytes);
      }
    }
    return world_.ranks == 1 ? 0 : bytes * world_.copyNanosecondsPerByte / records * slowness(rank);
  }

  const Schedule &schedule_;
  const World &world_;
  std::map<std::tuple<int64_t, int64_t, size_t, size_t>, double> known_;
};

} // namespace

double naiveEnd(const Schedule &schedule, const World &world, int64_t steps) {
  Definition definition(schedule, world);
  double end = 0;
  for (int64_t rank = 0; rank < world.ranks; ++rank)
    for (size_t stream = 0; stream < schedule.streams.size(); ++stream)
      end = std::max(end, definition.end(rank, steps - 1, stream, schedule.streams[stream].commands.size()));
  return end;
}

} // namespace gpuc
