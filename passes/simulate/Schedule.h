//===- Schedule.h - A step as a rank runs it: streams, events, exchanges ----===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpuc {

/// What a rank does, and in which order; nothing of what is computed. All ranks run the same step, over and
/// over. An event is recorded as often in a step as each of its waits is executed, and exchanges stand on one
/// stream.
struct Schedule {
  enum class Kind : uint8_t {
    work,
    exchange, ///< With all other ranks: begins when the last one has come, and ends for all at once.
    record,   ///< The event's next execution.
    wait,     ///< The n-th goes on after the (n - distance)-th execution of the event's record.
  };

  struct Command {
    Kind kind = Kind::work;
    double nanoseconds = 0; ///< Of an exchange: with nobody.
    int64_t bytes = 0;      ///< Of an exchange.
    unsigned event = 0;
    int64_t distance = 0;
    int64_t ordinal = 0; ///< Of a wait in a loop: the iteration.
    unsigned label = 0;
  };

  /// Its commands follow one another.
  struct Stream {
    std::string name;
    std::vector<Command> commands;
  };

  /// What traces call a command.
  struct Label {
    std::string name, kind, layer;
  };

  std::string timesBy; ///< Who says how long commands take.
  std::vector<Stream> streams;
  unsigned events = 0;
  std::vector<Label> labels;
  double stepNanoseconds = 0;    ///< Beside the commands, at the head of each step.
  double handoffNanoseconds = 0; ///< Until a stream sees what another one has recorded.
  bool joins = false;            ///< A step begins when the one before has ended on all streams.

  int64_t exchanges() const;
  int64_t exchangedBytes() const;

  /// The same where exchanges take no time.
  Schedule withoutExchanges() const;
};

} // namespace gpuc
