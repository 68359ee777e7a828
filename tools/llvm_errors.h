// What LLVM itself cannot go on from: no memory, a thread that cannot be made, a broken invariant.
#pragma once

namespace gpuc {

/// From now on these end the process as every error does, and not in a core dump: "error: …", status 1. A
/// tool that is linked with small_allocations.cpp ends so wherever a small piece of memory cannot be had.
void endInOneLineOnLlvmErrors();

}  // namespace gpuc
