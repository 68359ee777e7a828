// Starts the ranks of one machine, and watches them.
#pragma once

#include <chrono>
#include <functional>

#include "runtime/base/status.h"
#include "runtime/comm/communicator.h"

namespace gpuc {

/// As many as one machine can have.
inline constexpr int64_t kMostRanks = 1024;

struct LaunchOptions {
  int64_t ranks = 1;
  /// How long a rank waits for another one that is alive.
  std::chrono::milliseconds limit = std::chrono::minutes(10);
  /// How long a rank may be stopped (SIGSTOP) before it counts as lost, and how long the others have to end
  /// once one is lost.
  std::chrono::milliseconds patience = std::chrono::seconds(5);
  /// Whether ranks that somebody else has started share memory, too, if all are on one machine.
  bool shares_memory = true;
};

/// What a rank does; its exit status.
using RankBody = std::function<Result<int>(Communicator&)>;

/// Forks the ranks, which run `body` and end, and waits for them; to be called before there are threads.
/// SIGINT and SIGTERM are handed on. The exit status: 1 if one failed (its body gave an error, it ended by a
/// signal or was stopped for too long), else what a rank gave that is not 0, else 0. What ranks said is
/// written to stderr, that of who failed first before the others; none outlives the call. Ranks but the first
/// write nothing else to stdout and stderr.
Result<int> launchRanks(const LaunchOptions& options, const RankBody& body);

/// What the body gives, or the error that an exception of it is.
Result<int> callBody(const RankBody& body, Communicator& ranks);

/// From now on this process writes nothing to stdout and stderr, but for the line with which it ends where it
/// cannot go on. A descriptor of what was stderr.
int beQuiet();

/// For a rank that fails as others do, and leaves it to one of them to say why: launchers end all when the
/// first has ended, be it before that one, on a machine that has much else to do, has come so far.
void letAnotherSpeak();

}  // namespace gpuc
