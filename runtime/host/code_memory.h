// Memory that machine code runs from. Systems may forbid pages that are writable and executable, at once or
// one after the other (SELinux, PaX, PR_SET_MDWE): code is written to a file that has no name and is mapped
// from there, readable and executable.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/descriptor.h"
#include "runtime/base/status.h"

namespace gpuc {

/// An empty file without a name, from which code may be mapped: in memory, or where the
/// system has none such in $TMPDIR, /tmp, /var/tmp or /dev/shm, in which nobody else sees it. The error says
/// what each of them lacks.
Result<Descriptor> openCodeFile();

/// Writes all of `bytes` at `offset`.
Status writeCode(int file, std::span<const uint8_t> bytes, uint64_t offset);

/// Copies position-independent code to where it can be called by any thread as long as the process lives. One
/// thread at a time.
Result<const void*> keepCode(std::span<const uint8_t> code);

/// What all that is kept takes, in whole lines of a cache.
uint64_t keptCodeBytes();

}  // namespace gpuc
