// From the plan's commands to the host's.
#pragma once

#include <memory>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/host/arena.h"
#include "runtime/host/command.h"
#include "runtime/plan/access.h"
#include "runtime/plan/plan.h"

namespace gpuc {

class Ranks;

/// Resolves every operand of a program to an address in `arena` and every kernel to its function, `kernels`
/// being in the plan's order; commands speak to `ranks`; parallels may get lists for up to `threads` threads.
/// With `check_memory` the main stream poisons behind each command what is dead then. Errors: a matmul that
/// the host has no kernel for, named by its layer.
Result<std::unique_ptr<HostProgram>> lowerProgram(const Plan& plan, size_t program, Arena& arena,
                                                  const std::vector<KernelFunction>& kernels, Ranks& ranks,
                                                  int threads, bool check_memory = false);

}  // namespace gpuc
