// How much memory this machine has to give.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/status.h"

namespace gpuc {

/// Bytes that this process could still take: those that the kernel says can be had without swapping, and no
/// more than its control group has left. `root` is where /proc and /sys lie; tests have others.
Result<uint64_t> freeHostMemory(const std::string& root = "");

}  // namespace gpuc
