// Messages by TCP, for ranks whose launcher is no MPI's.
#pragma once

#include <memory>
#include <vector>

#include "runtime/comm/transport/tcp_meeting.h"
#include "runtime/comm/transport/transport.h"

namespace gpuc {

/// Lines to all other ranks, which come to the meeting place within `limit`. A rank that ends breaks its line
/// at once; a machine that vanishes does in half a minute.
Result<std::unique_ptr<Transport>> openTcp(const MeetingPlace& place, int64_t rank, int64_t size,
                                           std::chrono::milliseconds limit);

/// Over lines that are there, one to each rank; the one to this rank itself is not open.
std::unique_ptr<Transport> speakOver(std::vector<Socket> lines, int64_t rank);

}  // namespace gpuc
