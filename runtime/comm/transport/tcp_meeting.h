// How ranks that know but one address find one another.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/comm/transport/absent_ranks.h"
#include "runtime/comm/transport/socket.h"

namespace gpuc {

/// Where the first rank listens. Others may have taken its port: some above it are tried, too.
struct MeetingPlace {
  std::string host;
  int64_t port = 0;
  std::string job;  // the same for the ranks that belong together, and no others
  RanksHere here = {};

  static constexpr int64_t kPorts = 8;
};

/// A connection to each other rank; none to this one. All meet at the first rank, which tells them where each
/// listens; then those of higher rank connect to those of lower. Errors, when `limit` has passed: who has not
/// come, or cannot be reached where; before that, who has come and gone, or ended without having come.
Result<std::vector<Socket>> meetByTcp(const MeetingPlace& place, int64_t rank, int64_t size,
                                      std::chrono::milliseconds limit);

}  // namespace gpuc
