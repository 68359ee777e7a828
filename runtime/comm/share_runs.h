// The elements of a rank's share, one behind the other, and where they lie.
#pragma once

#include <cstddef>

#include "runtime/base/shares.h"

namespace gpuc {

/// Of the elements of a share, gaps left out, those from `begin` to before `end`.
struct ShareRun {
  size_t begin = 0, end = 0;
};

/// Reads and writes runs of shares in the whole, of which each rank has one, and in a share of one's own.
class ShareRuns {
 public:
  ShareRuns(const Shares& shares, size_t element_bytes) : shares_(shares), bytes_(element_bytes) {}

  /// Of a rank's share: where the run lies in `whole`, if it lies there in one; else `scratch`, to which it
  /// is copied.
  const std::byte* inWhole(size_t rank, ShareRun run, const std::byte* whole, std::byte* scratch) const;
  void toWhole(size_t rank, ShareRun run, const std::byte* from, std::byte* whole) const;

  /// The same of one's own share.
  const std::byte* inShare(ShareRun run, const std::byte* share, std::byte* scratch) const;

  /// The parts of a run that lie in one piece: calls part(piece, its first element in the piece's share, how
  /// many, how many of the run come before).
  template <typename Callback>
  void forEach(ShareRun run, Callback part) const {
    size_t first = 0;
    for (const Piece& piece : shares_.pieces) {
      const size_t begin = run.begin > first ? run.begin - first : 0;
      const size_t end = run.end > first ? (run.end - first < piece.each ? run.end - first : piece.each) : 0;
      if (begin < end) part(piece, begin, end - begin, first + begin - run.begin);
      first += piece.each;
    }
  }

 private:
  const Shares& shares_;
  size_t bytes_;
};

}  // namespace gpuc
