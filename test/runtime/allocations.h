// What a session's runs allocate. Needs the hook on every allocation (runtime/tooling/allocation_hook.cpp).
#pragma once

#include <cstdint>
#include <span>

#include "runtime/gpuc.h"
#include "runtime/tooling/allocation_hook.h"

namespace gpuc::test {

/// How often 20 runs allocate; -1 if one fails.
inline int64_t allocationsInRuns(Session& session, std::span<const HostTensorView> inputs) {
  const AllocationCount before = allocationCount();
  for (int run = 0; run < 20; ++run)
    if (!session.run(ProgramId{0}, inputs).ok() || !session.wait().ok()) return -1;
  return allocationCount().total() - before.total();
}

}  // namespace gpuc::test
