// Messages by MPI, which is opened when it is asked for: nothing of it is needed to build gpuc.
#pragma once

#include <memory>

#include "runtime/comm/transport/absent_ranks.h"
#include "runtime/comm/transport/transport.h"

namespace gpuc {

/// Which MPI a launcher is of; what it started finds one another by that library alone.
enum class MpiFlavour { open_mpi, mpich, any };

/// Begins MPI, once a process, as one of `size` ranks; the collectives may be called from any thread, one at
/// a time. Errors: no library, and what to install; one of another MPI than the launcher; one that is not
/// made for threads. MPI itself waits for who does not come; when `limit` has passed, or one has ended that
/// has not come, the process ends with a line that says so.
Result<std::unique_ptr<Transport>> openMpi(MpiFlavour flavour, int64_t rank, int64_t size,
                                           const RanksHere& here, std::chrono::milliseconds limit);

}  // namespace gpuc
