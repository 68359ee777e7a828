// Which of a machine's GPUs a rank has.
#pragma once

#include <memory>
#include <string>

#include "runtime/comm/communicator.h"
#include "runtime/hal/device.h"

namespace gpuc {

/// As openDevice, for one rank among others, which all call it: "cuda" is another GPU for each rank of a
/// machine, in the order of ranks. Errors, alike on all ranks: a machine that has fewer GPUs than ranks; two
/// ranks on one GPU.
Result<std::unique_ptr<Device>> openDeviceOfRank(const std::string& name, TargetKind target,
                                                 Communicator& ranks);

/// How many GPUs are to be seen, for who is about to start a rank on each. Asked by a process of its own: one
/// that has called the driver can fork none that do.
Result<int64_t> countGpusForRanks();

}  // namespace gpuc
