// Whose bytes lie where while a program runs: who reads a buffer must find what was written as that buffer.
// The compiler proves it of what it writes (plan-verify), for any number of iterations and in the order of
// events; this plays a plan file as it stands, iteration after iteration, and believes nobody.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/access.h"

namespace gpuc {

/// Plays one run of each program, the main stream of it. Variables, constants and inputs hold their own bytes
/// from the start, variables and constants must do so at the end, and outputs too. Error: the first command
/// that reads something else, with the buffer and who has overwritten it; or that writes over what it reads.
/// Buffers that other streams write are left out, and kernels are believed where they update an operand in
/// place. The value is false if a program repeats so often that the rest of it was left out.
Result<bool> checkContents(const fb::Plan& plan);

}  // namespace gpuc
