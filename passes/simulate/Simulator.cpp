//===- Simulator.cpp - Steps of many ranks, event by event ------------------===//
//
// A clock holds, for each group of ranks that are alike, how far a stream or an event has come. All ranks run
// the same commands, so that one order of them does for all: whatever streams and events allow. Only an
// exchange looks at several groups: it begins when the last of them has come.
//
//===----------------------------------------------------------------------===//

#include "passes/simulate/Simulator.h"

#include "runtime/base/philox.h"

#include <algorithm>
#include <cmath>

namespace gpuc {
namespace {

using Clock = std::vector<double>;
using Kind = Schedule::Kind;

/// What numbers are drawn for.
enum class Draw : uint32_t { compute, link };

/// 1 and, on average, `jitter` more: exponentially distributed.
double stretch(double jitter, uint64_t seed, Draw what, uint64_t step, uint64_t number) {
  if (jitter == 0)
    return 1;
  const PhiloxCounter bits = philox4x32({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32),
                                         static_cast<uint32_t>(step), static_cast<uint32_t>(what)},
                                        philoxKey(seed));
  const uint64_t word = uint64_t{bits[0]} << 32 | bits[1];
  const double uniform = static_cast<double>(word >> 11) * 0x1p-53; // in [0, 1)
  return 1 - jitter * std::log1p(-uniform);
}

/// When an event was recorded: the last executions, as many as a wait may ask for.
struct Event {
  int64_t perStep = 0, mostDistance = 0;
  int64_t recorded = 0;
  std::vector<Clock> last;

  Clock &at(int64_t execution) { return last[static_cast<size_t>(execution) % last.size()]; }
};

} // namespace

struct Simulator::State {
  const Schedule &schedule;
  const World world;
  size_t groups = 1;
  std::vector<Clock> streams;
  std::vector<Event> events;
  std::vector<double> copies; ///< By event: what copying what is exchanged behind a wait for it takes.
  Clock stretches;            ///< Of each group's work in this step.
  int64_t steps = 0, exchanges = 0;
  std::vector<int64_t> observed;
  std::function<void(const Executed &)> observer;

  State(const Schedule &schedule, const World &world);

  bool isStraggler(int64_t rank) const { return rank >= world.ranks - world.disturbance.stragglers; }
  int64_t firstRankOf(size_t group) const;
  size_t groupOf(int64_t rank) const;

  void findCopies();
  void drawStretches();
  void begin();
  bool isReady(const Schedule::Command &command);
  void execute(unsigned stream, const Schedule::Command &command);
  void exchange(Clock &clock, const Schedule::Command &command);
  void tell(unsigned stream, const Schedule::Command &command, const Clock &before) const;
};

Simulator::State::State(const Schedule &schedule, const World &world) : schedule(schedule), world(world) {
  const bool someAreSlow = world.disturbance.stragglers > 0 && world.disturbance.stragglers < world.ranks;
  groups = world.disturbance.computeJitter > 0 ? static_cast<size_t>(world.ranks) : someAreSlow ? 2 : 1;
  streams.assign(schedule.streams.size(), Clock(groups, 0));
  events.resize(schedule.events);
  for (const Schedule::Stream &stream : schedule.streams)
    for (const Schedule::Command &command : stream.commands) {
      if (command.kind == Kind::record)
        ++events[command.event].perStep;
      if (command.kind == Kind::wait)
        events[command.event].mostDistance = std::max(events[command.event].mostDistance, command.distance);
    }
  // A step of one stream may be over before another one has begun it.
  for (Event &event : events)
    event.last.assign(static_cast<size_t>(event.perStep + event.mostDistance) + 1, Clock(groups, 0));
  findCopies();
}

/// Exchanges that take turns with what computes have their copies within their own time.
void Simulator::State::findCopies() {
  copies.assign(events.size(), 0);
  if (world.ranks == 1)
    return;
  for (const Schedule::Stream &stream : schedule.streams) {
    const Schedule::Command *wait = nullptr;
    for (const Schedule::Command &command : stream.commands) {
      if (command.kind == Kind::wait)
        wait = &command;
      if (command.kind == Kind::exchange && wait != nullptr)
        copies[wait->event] += static_cast<double>(command.bytes) * world.copyNanosecondsPerByte /
                               static_cast<double>(events[wait->event].perStep);
    }
  }
}

/// Stragglers are the last ranks.
int64_t Simulator::State::firstRankOf(size_t group) const {
  if (groups == 2 && world.disturbance.computeJitter == 0)
    return group == 0 ? 0 : world.ranks - world.disturbance.stragglers;
  return static_cast<int64_t>(group);
}

size_t Simulator::State::groupOf(int64_t rank) const {
  if (world.disturbance.computeJitter > 0)
    return static_cast<size_t>(rank);
  return groups == 2 && isStraggler(rank) ? 1 : 0;
}

void Simulator::State::drawStretches() {
  const Disturbance &disturbance = world.disturbance;
  stretches.resize(groups);
  for (size_t group = 0; group < groups; ++group) {
    const int64_t rank = firstRankOf(group);
    stretches[group] = stretch(disturbance.computeJitter, disturbance.seed, Draw::compute,
                               static_cast<uint64_t>(steps), static_cast<uint64_t>(rank)) *
                       (isStraggler(rank) ? disturbance.slowdown : 1);
  }
}

/// The head of a step.
void Simulator::State::begin() {
  drawStretches();
  Clock latest(groups, 0);
  for (const Clock &stream : streams)
    for (size_t group = 0; group < groups; ++group)
      latest[group] = std::max(latest[group], stream[group]);
  for (Clock &stream : streams)
    for (size_t group = 0; group < groups; ++group)
      stream[group] =
          (schedule.joins ? latest[group] : stream[group]) + stretches[group] * schedule.stepNanoseconds;
}

static int64_t awaited(const Event &event, const Schedule::Command &wait, int64_t step) {
  return step * event.perStep + wait.ordinal - wait.distance;
}

bool Simulator::State::isReady(const Schedule::Command &command) {
  return command.kind != Kind::wait ||
         awaited(events[command.event], command, steps) < events[command.event].recorded;
}

void Simulator::State::exchange(Clock &clock, const Schedule::Command &command) {
  const Disturbance &disturbance = world.disturbance;
  const double drawn = stretch(disturbance.linkJitter, disturbance.seed, Draw::link,
                               static_cast<uint64_t>(steps), static_cast<uint64_t>(exchanges++));
  const double nanoseconds =
      world.ranks == 1 ? command.nanoseconds : world.exchangeNanoseconds(command.bytes) * drawn;
  clock.assign(groups, *std::max_element(clock.begin(), clock.end()) + nanoseconds);
}

void Simulator::State::execute(unsigned stream, const Schedule::Command &command) {
  Clock &clock = streams[stream];
  const Clock before = observer ? clock : Clock();
  if (command.kind == Kind::exchange) {
    exchange(clock, command);
  } else {
    if (command.kind == Kind::wait) {
      Event &event = events[command.event];
      if (const int64_t execution = awaited(event, command, steps); execution >= 0)
        for (size_t group = 0; group < groups; ++group)
          clock[group] = std::max(clock[group], event.at(execution)[group] + schedule.handoffNanoseconds);
    }
    for (size_t group = 0; group < groups; ++group)
      clock[group] += stretches[group] * command.nanoseconds;
    if (command.kind == Kind::record) {
      Event &event = events[command.event];
      event.at(event.recorded++) = clock;
      for (size_t group = 0; group < groups; ++group)
        clock[group] += stretches[group] * copies[command.event];
    }
  }
  if (observer)
    tell(stream, command, before);
}

void Simulator::State::tell(unsigned stream, const Schedule::Command &command, const Clock &before) const {
  for (int64_t rank : observed) {
    const size_t group = groupOf(rank);
    observer({rank, steps, stream, &command, before[group], streams[stream][group]});
  }
}

Simulator::Simulator(const Schedule &schedule, const World &world)
    : state_(std::make_unique<State>(schedule, world)) {}
Simulator::~Simulator() = default;

void Simulator::observe(std::vector<int64_t> ranks, std::function<void(const Executed &)> observer) {
  state_->observed = std::move(ranks);
  state_->observer = std::move(observer);
}

Status Simulator::step() {
  State &state = *state_;
  const std::vector<Schedule::Stream> &streams = state.schedule.streams;
  state.begin();
  std::vector<size_t> next(streams.size(), 0);
  for (bool goesOn = true; goesOn;) {
    goesOn = false;
    for (unsigned stream = 0; stream < streams.size(); ++stream) {
      const std::vector<Schedule::Command> &commands = streams[stream].commands;
      for (; next[stream] < commands.size() && state.isReady(commands[next[stream]]); ++next[stream]) {
        state.execute(stream, commands[next[stream]]);
        goesOn = true;
      }
    }
  }
  for (unsigned stream = 0; stream < streams.size(); ++stream)
    if (next[stream] < streams[stream].commands.size())
      return Status::error("stream '" + streams[stream].name + "' waits for ever, at its command " +
                           std::to_string(next[stream]));
  ++state.steps;
  return okStatus();
}

int64_t warmUpSteps(const Schedule &schedule) {
  int64_t most = 0;
  for (const Schedule::Stream &stream : schedule.streams)
    for (const Schedule::Command &command : stream.commands)
      most = std::max(most, command.distance);
  return most + 2;
}

double Simulator::now() const {
  double latest = 0;
  for (const Clock &stream : state_->streams)
    latest = std::max(latest, *std::max_element(stream.begin(), stream.end()));
  return latest;
}

} // namespace gpuc
