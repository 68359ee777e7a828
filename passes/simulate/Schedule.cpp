//===- Schedule.cpp - A step as a rank runs it: streams, events, exchanges --===//

#include "passes/simulate/Schedule.h"

namespace gpuc {

int64_t Schedule::exchanges() const {
  int64_t count = 0;
  for (const Stream &stream : streams)
    for (const Command &command : stream.commands)
      count += command.kind == Kind::exchange;
  return count;
}

int64_t Schedule::exchangedBytes() const {
  int64_t bytes = 0;
  for (const Stream &stream : streams)
    for (const Command &command : stream.commands)
      bytes += command.bytes;
  return bytes;
}

Schedule Schedule::withoutExchanges() const {
  Schedule alone = *this;
  alone.handoffNanoseconds = 0; // nobody has to wait for them
  for (Stream &stream : alone.streams)
    for (Command &command : stream.commands)
      if (command.kind == Kind::exchange)
        command = {.label = command.label};
  return alone;
}

} // namespace gpuc
