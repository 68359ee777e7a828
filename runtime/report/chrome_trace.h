// Profiles for chrome://tracing and https://ui.perfetto.dev: the trace event format, complete events ("ph":
// "X").
#pragma once

#include <string>
#include <vector>

#include "runtime/hal/device.h"
#include "runtime/plan/plan.h"

namespace gpuc {

/// One event for each execution of a command, named after kernel and layer; times in microseconds since the
/// first, a stream is a thread.
std::string chromeTrace(const Plan& plan, const std::vector<ProfileEvent>& events);

}  // namespace gpuc
