// Puts one run of a program on CUDA streams. Nothing here allocates.
#pragma once

#include <span>

#include "runtime/cuda/command.h"

namespace gpuc::cuda {

/// Enqueues every command once, repeats as often as they say. streams[s] takes the program's stream s.
///
/// CUDA waits for the record of an event that was enqueued last, so a wait may only be enqueued behind the
/// record that it means: streams take turns, each going on until it meets a record that another has not
/// enqueued yet. Error: none can go on, or the driver's own; the session cannot go on then.
Status enqueueProgram(const Driver& driver, CudaProgram& program, std::span<const Stream> streams);

}  // namespace gpuc::cuda
