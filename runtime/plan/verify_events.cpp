// Events: each recorded by one command, waited for as often as recorded, and no stream left waiting for ever.
//
// Because records and waits of an event are executed equally often in a run, the i-th wait of a run needs
// record (i - distance) of the same run, or one of an earlier run, which is over. So it is enough to play one
// run. Streams and counters are a Kahn network: if playing each stream as far as it goes gets stuck, every
// order does.
#include <cinttypes>
#include <vector>

#include "runtime/plan/verify.h"

namespace gpuc {
namespace {

/// A stream without all that does not concern events, as a flat list. A loop is a Begin and an End that
/// name each other's places.
struct Step {
  enum Kind { record, wait, begin, end } kind;
  uint32_t event = 0;     // record, wait
  uint32_t distance = 0;  // wait
  uint64_t count = 0;     // begin
  size_t begin_at = 0;    // end
  uint64_t done = 0;      // wait: executions; end: iterations
};

struct EventUse {
  uint32_t recorders = 0;
  uint64_t records = 0;  // executions in a run
};

/// Flattens one stream and counts who records what how often.
class StepCollector {
 public:
  StepCollector(std::vector<Step>& steps, std::vector<EventUse>& uses, uint64_t& executions)
      : steps_(steps), uses_(uses), executions_(executions) {}

  void collect(const Commands* commands, uint64_t times) {
    for (const fb::Command* command : each(commands)) {
      if (const fb::Record* record = command->work_as_Record()) {
        ++uses_[record->event()].recorders;
        uses_[record->event()].records += times;
        add({.kind = Step::record, .event = record->event()}, times);
      } else if (const fb::Wait* wait = command->work_as_Wait()) {
        add({.kind = Step::wait, .event = wait->event(), .distance = wait->distance()}, times);
      } else if (const std::optional<CommandLoop> loop = loopOf(*command)) {
        collect(*loop, times);
      }
    }
  }

 private:
  void collect(const CommandLoop& loop, uint64_t times) {
    size_t begin = steps_.size();
    steps_.push_back({.kind = Step::begin, .count = loop.count});
    collect(loop.commands, times * loop.count);
    if (steps_.size() == begin + 1)
      steps_.pop_back();  // nothing in it waits or records
    else
      steps_.push_back({.kind = Step::end, .begin_at = begin});
  }

  void add(Step step, uint64_t times) {
    steps_.push_back(step);
    if (__builtin_add_overflow(executions_, times, &executions_)) executions_ = UINT64_MAX;
  }

  std::vector<Step>& steps_;
  std::vector<EventUse>& uses_;
  uint64_t& executions_;
};

Status verifyWaits(const fb::Program& program, const Commands* commands, const std::vector<EventUse>& uses,
                   uint64_t times) {
  for (const fb::Command* command : each(commands)) {
    if (const std::optional<CommandLoop> loop = loopOf(*command))
      GPUC_RETURN_IF_ERROR(verifyWaits(program, loop->commands, uses, times * loop->count));
    const fb::Wait* wait = command->work_as_Wait();
    if (!wait) continue;
    const EventUse& use = uses[wait->event()];
    if (use.recorders == 0 || use.records != times)
      return errorf("event %s is waited for %" PRIu64 " times in a run and recorded %" PRIu64 " times",
                    quoted(program.events()->Get(wait->event())).c_str(), times, use.records);
  }
  return okStatus();
}

/// Plays the streams until all are at their ends or none can go on.
class Player {
 public:
  Player(std::vector<std::vector<Step>>& streams, size_t events)
      : streams_(streams), at_(streams.size(), 0), records_(events, 0) {}

  Status play(const fb::Program& program) {
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t s = 0; s < streams_.size(); ++s) progress |= advance(s);
    }
    for (size_t s = 0; s < streams_.size(); ++s)
      if (at_[s] < streams_[s].size())
        return errorf("stream %s would wait for event %s for ever",
                      quoted(program.streams()->Get(s)->name()).c_str(),
                      quoted(program.events()->Get(streams_[s][at_[s]].event)).c_str());
    return okStatus();
  }

 private:
  bool advance(size_t s) {
    bool progress = false;
    while (at_[s] < streams_[s].size() && execute(s)) progress = true;
    return progress;
  }

  /// Executes the step at which stream `s` stands and moves on, unless it has to wait.
  bool execute(size_t s) {
    Step& step = streams_[s][at_[s]];
    if (step.kind == Step::wait) {
      uint64_t needed = step.done + 1 > step.distance ? step.done + 1 - step.distance : 0;
      if (records_[step.event] < needed) return false;
      ++step.done;
    } else if (step.kind == Step::record) {
      ++records_[step.event];
    } else if (step.kind == Step::end) {
      if (++step.done < streams_[s][step.begin_at].count) {
        at_[s] = step.begin_at + 1;
        return true;
      }
      step.done = 0;
    }
    ++at_[s];
    return true;
  }

  std::vector<std::vector<Step>>& streams_;
  std::vector<size_t> at_;
  std::vector<uint64_t> records_;
};

}  // namespace

Status verifyEvents(const fb::Program& program, uint64_t& executions) {
  std::vector<EventUse> uses(countOf(program.events()));
  std::vector<std::vector<Step>> streams(countOf(program.streams()));
  for (size_t s = 0; s < streams.size(); ++s)
    StepCollector(streams[s], uses, executions).collect(program.streams()->Get(s)->commands(), 1);
  for (size_t e = 0; e < uses.size(); ++e)
    if (uses[e].recorders > 1)
      return errorf("event %s is recorded by %" PRIu32 " commands, expected one",
                    quoted(program.events()->Get(e)).c_str(), uses[e].recorders);
  for (const fb::Stream* stream : each(program.streams()))
    GPUC_RETURN_IF_ERROR(verifyWaits(program, stream->commands(), uses, 1));
  // Repeats are entered only for the events within them: their executions bound the play.
  if (executions > kMostEventExecutions)
    return errorf("%" PRIu64
                  " records and waits in a run, those of the programs before it included, at most %" PRIu64,
                  executions, kMostEventExecutions);
  return Player(streams, uses.size()).play(program);
}

}  // namespace gpuc
