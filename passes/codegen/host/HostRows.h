//===- HostRows.h - Which rows of an operand a kernel's tiles touch ---------===//
#pragma once

#include "passes/codegen/host/HostLoops.h"

namespace gpuc::codegen {

/// Finds the rows that the kernel's tiles fall into, if they do, and the operands that go by these.
void findRows(KernelSchedule &schedule, const Kernel &kernel, const HostLoops &loops);

} // namespace gpuc::codegen
