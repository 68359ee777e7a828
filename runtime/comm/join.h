// One rank among those that a launcher has started.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/launch.h"
#include "runtime/comm/launcher.h"

namespace gpuc {

/// From the first word to the last, for a program that speaks for itself.
class JoinedRanks {
 public:
  /// Finds the other ranks; `options.ranks` is not read. Of an error the others know.
  static Result<std::unique_ptr<JoinedRanks>> join(const Launcher& launcher, const LaunchOptions& options);
  virtual ~JoinedRanks() = default;

  virtual Communicator& ranks() = 0;

  /// Waits for all to come to their end; nothing else is called after a success.
  virtual Status end() = 0;

  /// For a rank that fails: tells the others why. What each said, empty of those that said nothing.
  virtual std::vector<std::string> giveUp(const std::string& why) = 0;

  /// Behind giveUp(), and what this rank had to say: launchers end all ranks when the first has ended, which
  /// waits here until the others have come as far.
  virtual void leave() = 0;
};

/// Finds the other ranks, runs `body` and ends; `options.ranks` is not read. The exit status: that of `body`,
/// or 1 after an error of it, or if a rank was lost. An error is on stderr by then, once if several ranks
/// have the same. Ranks but the first write nothing else to stdout and stderr.
int joinRanks(const Launcher& launcher, const LaunchOptions& options, const RankBody& body);

}  // namespace gpuc
