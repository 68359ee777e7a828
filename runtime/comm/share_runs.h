// The elements of a rank's shares, one behind the other, and where they lie.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/base/shares.h"

namespace gpuc {

/// Of the elements of a rank's shares, those from `begin` to before `end`.
struct ShareRun {
  size_t begin = 0, end = 0;
};

/// Where each piece lies; of wholes, each tensor of it.
using Places = std::span<void* const>;
using ConstPlaces = std::span<const void* const>;

/// Reads and writes runs of shares in the whole pieces, of which each rank has some, and in shares of one's
/// own.
class ShareRuns {
 public:
  ShareRuns(const Shares& shares, size_t element_bytes) : shares_(shares), bytes_(element_bytes) {}

  /// Of a rank's shares: where the run lies in `wholes`, if it lies there in one; else `scratch`, to which it
  /// is copied.
  const std::byte* inWholes(size_t rank, ShareRun run, ConstPlaces wholes, std::byte* scratch) const;
  void toWholes(size_t rank, ShareRun run, const std::byte* from, Places wholes) const;

  /// The same of one's own shares.
  const std::byte* inShares(ShareRun run, ConstPlaces shares, std::byte* scratch) const;

  /// The parts of a run that lie in one piece: calls part(number of the piece, its first element in the
  /// piece's share, how many, how many of the run come before).
  template <typename Callback>
  void forEach(ShareRun run, Callback part) const {
    size_t first = 0;
    for (size_t number = 0; number < shares_.pieces.size(); ++number) {
      const size_t each = shares_.pieces[number].each;
      const size_t begin = run.begin > first ? run.begin - first : 0;
      const size_t end = run.end > first ? (run.end - first < each ? run.end - first : each) : 0;
      if (begin < end) part(number, begin, end - begin, first + begin - run.begin);
      first += each;
    }
  }

 private:
  /// The tensor in which a rank's elements `there` of a piece lie, and their place in it.
  struct Place {
    size_t tensor = 0, offset_bytes = 0;
  };
  Place placeOf(size_t piece, size_t rank, Piece::Run there) const;

  const Shares& shares_;
  size_t bytes_;
};

}  // namespace gpuc
