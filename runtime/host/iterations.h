// Repeats whose iterations the threads take side by side: each iteration has bytes of its own to write, as
// the compiler gives them to the shards of a batch. A thread walks through all commands of an iteration alone
// and joins the others once.
#pragma once

#include <cstdint>

#include "runtime/plan/access.h"

namespace gpuc {

/// More are executed one after the other: each has a list of commands of its own.
inline constexpr uint64_t kMostParallelIterations = 64;

/// Whether the iterations of `repeat`, which stands in no other, may be executed at once: none touches bytes
/// that another one writes, and none waits. False for a single one, and for more than
/// kMostParallelIterations.
bool areIndependent(const fb::Plan& plan, const fb::Repeat& repeat);

}  // namespace gpuc
