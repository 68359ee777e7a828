// Profiles for chrome://tracing and https://ui.perfetto.dev: the trace event format, complete events ("ph":
// "X").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/hal/device.h"
#include "runtime/plan/plan.h"

namespace gpuc {

/// A line of events, which follow one another: a stream. Lines of one process stand together, under its name
/// if it has one.
struct TraceLine {
  std::string name, process_name;
  int64_t process = 0;
};

/// An execution of a command.
struct TraceEvent {
  size_t line = 0;
  std::string name, kind, entry, location;
  double begin_ns = 0, end_ns = 0;
  std::optional<uint64_t> bytes = std::nullopt;  // that the command reads and writes
};

/// Times are in microseconds since the first.
std::string chromeTrace(const std::vector<TraceLine>& lines, const std::vector<TraceEvent>& events);

/// One event for each execution of a command, named after kernel and layer; a stream is a thread.
std::string chromeTrace(const Plan& plan, const std::vector<ProfileEvent>& events);

}  // namespace gpuc
