// What this CPU and its system can execute, by the names that LLVM gives CPU features.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace gpuc {

/// "Intel(R) Xeon(R) Processor": the CPU's name of itself.
std::string cpuName();

/// True if the CPU has the feature and the system saves the registers that come with it. False also for a
/// name that is not known here.
bool cpuHasFeature(std::string_view feature);

/// Errors name each of `features` that is missing, and what this CPU is. `target`: what the code was compiled
/// for.
Status checkCpuFeatures(const std::string& target, const std::vector<std::string>& features);

}  // namespace gpuc
