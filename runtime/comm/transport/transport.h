// Messages from one rank to another, by whatever carries them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace gpuc {

/// One rank's end of the lines to all others. Between two ranks messages arrive in the order in which they
/// were sent. Nothing is allocated after the transport was made, unless something fails.
class Transport {
 public:
  /// Says what a message is, from 0 to kMostLabel.
  using Label = int32_t;
  static constexpr Label kMostLabel = (1 << 15) - 1;

  /// As many may be under way to one rank at once.
  static constexpr size_t kMostSends = 4;

  /// The line to one rank.
  struct Line {
    size_t sends = 0;           // under way
    bool is_receiving = false;  // a message is expected that has not come
    Label label = 0;            // of the message that came last
    size_t length = 0;          // and its bytes
    std::string broken = {};    // why nothing will come any more, as "has …"
  };

  virtual ~Transport() = default;

  int64_t rank() const { return rank_; }
  int64_t size() const { return static_cast<int64_t>(lines_.size()); }
  const Line& line(int64_t rank) const { return lines_[static_cast<size_t>(rank)]; }

  // What fails breaks a line, and is said there.

  /// Begins to send: the bytes must stay as they are until line(to).sends says that this is done.
  virtual void send(int64_t to, Label label, std::span<const std::byte> bytes) = 0;

  /// Begins to receive the next message, one at a time from each rank: it has at most as many bytes, or the
  /// line breaks.
  virtual void receive(int64_t from, std::span<std::byte> bytes) = 0;

  /// Goes on with what was begun, as far as that is possible now; whether that was of any use.
  virtual bool progress() = 0;

  /// Lets others have the core for a little while, after so many calls of progress() in a row that were of no
  /// use. At most some milliseconds.
  virtual void rest(int64_t idle_calls) = 0;

  /// There are more ranks than cores: whoever waits is in the way of whom it waits for.
  void setCrowded(bool is_crowded) { is_crowded_ = is_crowded; }

  /// Nothing is under way, and no rank will send or receive again. Returns when all others have come to it,
  /// too, or soon; not called after a failure.
  virtual Status close() = 0;

 protected:
  Transport(int64_t rank, int64_t size) : rank_(rank), lines_(static_cast<size_t>(size)) {}
  Line& lineTo(int64_t rank) { return lines_[static_cast<size_t>(rank)]; }

  bool isCrowded() const { return is_crowded_; }

 private:
  bool is_crowded_ = true;
  const int64_t rank_;
  std::vector<Line> lines_;
};

}  // namespace gpuc
