// Takes in those that connect, whoever they are, and finds the ranks among them.
#pragma once

#include <deque>
#include <functional>
#include <optional>

#include "runtime/comm/transport/socket.h"

namespace gpuc {

/// The first words of who connects, and of who answers.
struct Hello {
  static constexpr uint64_t kMagic = 0x67707563'72616e00;  // "gpucran" and the version
  static constexpr uint64_t kVersion = 1;

  uint64_t magic = kMagic | kVersion;
  uint64_t job = 0;
  int64_t rank = 0;
  int64_t size = 0;
  int64_t port = 0;  // where it listens itself

  uint64_t version() const { return magic & 0xff; }
  /// Whoever else it may be, it is of this job.
  bool isOf(uint64_t this_job) const { return (magic & ~uint64_t{0xff}) == kMagic && job == this_job; }
};

/// Listens to all that have connected at once, so that nobody who says nothing, or only half of a greeting,
/// holds up the others.
class Reception {
 public:
  /// What becomes of one that has said its greeting.
  using Take = std::function<Status(Socket socket, const Hello& hello)>;

  explicit Reception(const Socket& listener) : listener_(listener) {}

  /// Waits for something to happen, until `deadline` at most.
  Status serve(Deadline deadline, const Take& take);

 private:
  struct Guest {
    Socket socket;
    Hello hello = {};
    size_t heard = 0;  // bytes of it
    Deadline patience;
  };
  enum class Said : uint8_t { all, less, nothing_of_use };

  void letIn();
  static Said listenTo(Guest& guest);

  const Socket& listener_;
  std::deque<Guest> guests_;  // those that came first in front
};

}  // namespace gpuc
